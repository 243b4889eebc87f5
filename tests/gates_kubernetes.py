"""A small Kubernetes API over TLS with objects in memory, lists, selectors and watches."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

from talos_api.credentials import load_identity, openssl_key
from tests.talos_pki import TestAuthority

Object = dict[str, Any]

RAW_PATHS = ("/readyz",)


@dataclass(kw_only=True)
class FakeKubernetes:
    """Serves what it was given; everything else is 404."""

    authority: TestAuthority = field(default_factory=TestAuthority)
    collections: dict[str, dict[tuple[str, str], Object]] = field(default_factory=dict)
    singles: dict[str, Object] = field(default_factory=dict)
    failures: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Status and body by path, instead of an answer."""
    allowed: bool = True
    port: int = 0
    requests: list[str] = field(default_factory=list)
    _version: int = 1
    _history: list[tuple[int, str, Object]] = field(default_factory=list)
    _watchers: list[tuple[str, asyncio.Queue[Object]]] = field(default_factory=list)
    _servers: list[asyncio.Server] = field(default_factory=list)
    _open: set[asyncio.Task[None]] = field(default_factory=set)

    def put(self, path: str, *items: Object) -> None:
        """Create or update objects of a cluster-wide list path."""
        known = self.collections.setdefault(path, {})
        for item in items:
            self._version += 1
            meta = item.setdefault("metadata", {})
            meta["resourceVersion"] = str(self._version)
            key = (meta.get("namespace", ""), meta["name"])
            self._tell(path, "MODIFIED" if key in known else "ADDED", item)
            known[key] = item

    def remove(self, path: str, name: str, namespace: str = "") -> None:
        item = self.collections[path].pop((namespace, name))
        self._version += 1
        item["metadata"]["resourceVersion"] = str(self._version)
        self._tell(path, "DELETED", item)

    def break_watches(self, status: Object) -> None:
        """Send every watcher an error event."""
        for _, queue in self._watchers:
            queue.put_nowait({"type": "ERROR", "object": status})

    def bookmark(self) -> None:
        for _, queue in self._watchers:
            queue.put_nowait({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(self._version)}}})

    @property
    def watching(self) -> int:
        return len(self._watchers)

    def kubeconfig(self, *, authority: TestAuthority | None = None, address: str = "127.0.0.1", port: int = 0) -> str:
        client = (authority or self.authority).credentials("system:masters")
        user = {
            "client-certificate-data": _base64(client.certificate),
            "client-key-data": _base64(openssl_key(client.key)),
        }
        cluster = {
            "server": f"https://{address}:{port or self.port}",
            "certificate-authority-data": _base64((authority or self.authority).certificate),
        }
        return yaml.safe_dump(
            {
                "current-context": "admin@test",
                "contexts": [{"name": "admin@test", "context": {"cluster": "test", "user": "admin@test"}}],
                "clusters": [{"name": "test", "cluster": cluster}],
                "users": [{"name": "admin@test", "user": user}],
            }
        )

    async def listen(self, address: str = "127.0.0.1") -> None:
        """On a free port first, then on the same port of further addresses."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        identity = self.authority.server(address)
        load_identity(context, identity.certificate, identity.key)
        context.load_verify_locations(cadata=self.authority.certificate)
        context.verify_mode = ssl.CERT_OPTIONAL
        server = await asyncio.start_server(self._serve, address, self.port, ssl=context)
        self.port = server.sockets[0].getsockname()[1]
        self._servers.append(server)

    async def close(self) -> None:
        for server in self._servers:
            server.close()
        for task in list(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        for server in self._servers:
            await server.wait_closed()
        self._servers.clear()

    def _tell(self, path: str, kind: str, item: Object) -> None:
        event = {"type": kind, "object": json.loads(json.dumps(item))}
        self._history.append((self._version, path, event))
        for watched, queue in self._watchers:
            if watched == path:
                queue.put_nowait(event)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            while await self._answer(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError, ssl.SSLError):
            pass
        finally:
            self._open.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        method, target, _ = head[0].split(" ")
        headers = {line.split(": ")[0].lower(): line.split(": ")[1] for line in head[1:] if ": " in line}
        await reader.readexactly(int(headers.get("content-length", "0")))
        url = urlsplit(target)
        query = {key: values[0] for key, values in parse_qs(url.query, keep_blank_values=True).items()}
        self.requests.append(f"{method} {target} {headers.get('accept', '')}")
        if not writer.get_extra_info("ssl_object").getpeercert():
            return await _send(writer, 401, {"message": "Unauthorized"})
        if url.path in self.failures:
            status, body = self.failures[url.path]
            return await _send(writer, status, body)
        if query.get("watch") == "1" and self._collection(url.path)[0] in self.collections:
            await self._watch(writer, *self._collection(url.path), since=int(query["resourceVersion"]))
            return False
        return await _send(writer, *self._found(method, url.path, query))

    def _found(self, method: str, path: str, query: dict[str, str]) -> tuple[int, Any]:
        if path in RAW_PATHS:
            return 200, "ok"
        if path.endswith("selfsubjectaccessreviews") and method == "POST":
            return 201, {"status": {"allowed": self.allowed}}
        if path in self.singles:
            return 200, self.singles[path]
        whole, namespace = self._collection(path)
        if whole not in self.collections:
            return 404, {"message": "the server could not find the requested resource"}
        items = [item for item in self.collections[whole].values() if _selected(item, namespace, query)]
        return 200, {"metadata": {"resourceVersion": str(self._version)}, "items": items}

    def _collection(self, path: str) -> tuple[str, str]:
        """The cluster-wide path of a namespaced list, and the namespace."""
        parts = path.split("/")
        if "namespaces" in parts and path not in self.collections:
            at = parts.index("namespaces")
            if len(parts) > at + 2:
                return "/".join([*parts[:at], *parts[at + 2 :]]), parts[at + 1]
        return path, ""

    async def _watch(self, writer: asyncio.StreamWriter, path: str, namespace: str, *, since: int) -> None:
        queue: asyncio.Queue[Object] = asyncio.Queue()
        for version, changed, event in self._history:
            if changed == path and version > since:
                queue.put_nowait(event)
        self._watchers.append((path, queue))
        try:
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            while True:
                await writer.drain()
                event = await queue.get()
                if not namespace or event["object"].get("metadata", {}).get("namespace", namespace) == namespace:
                    line = json.dumps(event).encode() + b"\n"
                    writer.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
        finally:
            self._watchers.remove((path, queue))


def _selected(item: Object, namespace: str, query: dict[str, str]) -> bool:
    meta = item["metadata"]
    if namespace and meta.get("namespace") != namespace:
        return False
    if "fieldSelector" in query and query["fieldSelector"] != f"metadata.name={meta['name']}":
        return False
    if "labelSelector" in query:
        key, _, value = query["labelSelector"].partition("=")
        return bool((meta.get("labels") or {}).get(key) == value)
    return True


async def _send(writer: asyncio.StreamWriter, status: int, body: Any) -> bool:
    content = (body if isinstance(body, str) else json.dumps(body)).encode()
    writer.write(f"HTTP/1.1 {status} Said\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content)
    await writer.drain()
    return True


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@asynccontextmanager
async def serving(*addresses: str) -> AsyncIterator[FakeKubernetes]:
    server = FakeKubernetes()
    for address in addresses or ("127.0.0.1",):
        await server.listen(address)
    try:
        yield server
    finally:
        await server.close()


def condition(kind: str, status: str = "True", **more: Any) -> Object:
    return {"type": kind, "status": status, **more}
