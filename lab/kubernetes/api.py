"""A small client of the Kubernetes API, for the emulated kubelets."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import httpx

Object = dict[str, Any]
STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
TIMEOUT = httpx.Timeout(30.0)
WATCH_SECONDS = 300


class ApiError(Exception):
    """The API server's own words."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


class Api:
    """Requests of the lab itself, or of somebody it impersonates: then that somebody's permissions count."""

    def __init__(self, url: str, *, ca: Path, certificate: Path, key: Path) -> None:
        context = ssl.create_default_context(cafile=str(ca))
        context.load_cert_chain(certificate, key)
        limits = httpx.Limits(max_connections=64, max_keepalive_connections=32)
        self._client = httpx.AsyncClient(base_url=url, verify=context, timeout=TIMEOUT, limits=limits, trust_env=False)

    async def ready(self) -> bool:
        response = await self._client.get("/readyz")
        return response.is_success

    async def get(self, path: str, *, actor: Mapping[str, str] | None = None) -> Object:
        return await self._request("GET", path, actor=actor)

    async def find(self, path: str, *, actor: Mapping[str, str] | None = None) -> Object | None:
        """None where there is no such object."""
        try:
            return await self.get(path, actor=actor)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    async def create(self, path: str, body: Object, *, actor: Mapping[str, str] | None = None) -> Object:
        return await self._request("POST", path, body, actor=actor)

    async def replace(self, path: str, body: Object, *, actor: Mapping[str, str] | None = None) -> Object:
        return await self._request("PUT", path, body, actor=actor)

    async def patch(
        self, path: str, body: Object, *, kind: str = STRATEGIC, actor: Mapping[str, str] | None = None
    ) -> Object:
        return await self._request("PATCH", path, body, content_type=kind, actor=actor)

    async def delete(self, path: str, body: Object | None = None, *, actor: Mapping[str, str] | None = None) -> Object:
        return await self._request("DELETE", path, body, actor=actor)

    async def watch(self, path: str, version: str) -> AsyncIterator[Object]:
        """Events after that resource version, until the server ends the watch."""
        parameters = {
            "watch": "true",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(WATCH_SECONDS),
        }
        timeout = httpx.Timeout(10.0, read=WATCH_SECONDS + 30.0)
        async with self._client.stream("GET", path, params=parameters, timeout=timeout) as response:
            if response.is_error:
                raise _error(response.status_code, await response.aread())
            async for line in response.aiter_lines():
                yield json.loads(line)

    async def close(self) -> None:
        await self._client.aclose()

    async def _request(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        *,
        content_type: str = "application/json",
        actor: Mapping[str, str] | None = None,
    ) -> Object:
        content = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": content_type, **(actor or {})}
        response = await self._client.request(method, path, content=content, headers=headers)
        if response.is_error:
            raise _error(response.status_code, response.content)
        parsed: Object = response.json()
        return parsed


def node_actor(node: str) -> dict[str, str]:
    """The kubelet's identity: the Node authorizer and NodeRestriction see it as they see a real one."""
    return {"Impersonate-User": f"system:node:{node}", "Impersonate-Group": "system:nodes"}


def account_actor(namespace: str, account: str) -> dict[str, str]:
    """A service account's identity, so that what its RBAC rules lack is lacking here too."""
    return {"Impersonate-User": f"system:serviceaccount:{namespace}:{account}"}


def _error(status: int, content: bytes) -> ApiError:
    try:
        message = str(json.loads(content).get("message"))
    except ValueError:
        message = content.decode(errors="replace")
    return ApiError(status, message[:1000])
