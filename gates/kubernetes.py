"""A small read-only Kubernetes client made from one kubeconfig and nothing else."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx
import yaml

from gates.session import ATTEMPT
from gates.trouble import TroubleError, explain
from talos_api.credentials import load_identity

Object = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Kubeconfig:
    """The cluster and user of a kubeconfig's current context."""

    server: str
    ca: str = field(repr=False)
    certificate: str | None = field(repr=False, default=None)
    key: str | None = field(repr=False, default=None)
    token: str | None = field(repr=False, default=None)

    @classmethod
    def parse(cls, text: str) -> Kubeconfig:
        document = yaml.safe_load(text)
        context = _named(document["contexts"], document["current-context"], "context")
        cluster = _named(document["clusters"], context["cluster"], "cluster")
        user = _named(document["users"], context["user"], "user")
        return cls(
            server=cluster["server"],
            ca=_decoded(cluster["certificate-authority-data"]),
            certificate=_optional(user, "client-certificate-data"),
            key=_optional(user, "client-key-data"),
            token=user.get("token"),
        )

    def context(self) -> ssl.SSLContext:
        """Trusts the cluster's own CA only."""
        context = ssl.create_default_context(cadata=self.ca)
        if self.certificate and self.key:
            load_identity(context, self.certificate, self.key)
        return context


class Kubernetes:
    """Reads from one API server; another address of the same cluster can be asked instead of the kubeconfig's."""

    def __init__(self, kubeconfig: str, *, address: str | None = None) -> None:
        config = Kubeconfig.parse(kubeconfig)
        self.server = str(httpx.URL(config.server).copy_with(host=address)) if address else config.server
        headers = {"Authorization": f"Bearer {config.token}"} if config.token else {}
        self._http = httpx.AsyncClient(
            base_url=self.server, headers=headers, verify=config.context(), trust_env=False, timeout=ATTEMPT
        )

    async def get(self, path: str, /, *, metadata_only: bool = False, **query: str) -> Object:
        """A JSON object, or TroubleError."""
        answer = await self._send("GET", path, params=query, headers=_accept("List" if metadata_only else None))
        return dict(answer.json())

    async def post(self, path: str, body: Object) -> Object:
        """For reviews only: they are questions that Kubernetes takes as POST."""
        answer = await self._send("POST", path, json=body)
        return dict(answer.json())

    async def text(self, path: str, **query: str) -> str:
        return (await self._send("GET", path, params=query)).text

    async def watch(
        self, path: str, version: str, *, seconds: int, query: Mapping[str, str], metadata_only: bool = False
    ) -> AsyncGenerator[Object, None]:
        """Events after a version, for some seconds."""
        params = {
            **query,
            "watch": "1",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(seconds),
        }
        try:
            timeout = httpx.Timeout(ATTEMPT, read=seconds + ATTEMPT)
            headers = _accept("" if metadata_only else None)
            async with self._http.stream("GET", path, params=params, headers=headers, timeout=timeout) as answer:
                if answer.status_code != 200:
                    await answer.aread()
                    raise refused(answer, self.server)
                async for line in answer.aiter_lines():
                    yield json.loads(line)
        except httpx.HTTPError as error:
            raise explain(error, self.server) from None

    async def close(self) -> None:
        await self._http.aclose()

    async def _send(self, method: str, path: str, **options: Any) -> httpx.Response:
        try:
            answer = await self._http.request(method, path, **options)
        except httpx.HTTPError as error:
            raise explain(error, self.server) from None
        if not answer.is_success:
            raise refused(answer, self.server)
        return answer


class MissingError(TroubleError):
    """The server does not know this path or object."""


def refused(answer: httpx.Response, where: str) -> TroubleError:
    told = f"{where}: {answer.request.url.path} answered {answer.status_code} {_said(answer)}".rstrip()
    if answer.status_code == 404:
        return MissingError(told)
    if answer.status_code == 401:
        return TroubleError(told, "the kubeconfig's credentials are not this cluster's, or expired", hopeless=True)
    return TroubleError(told)


def kubectl(kubeconfig: str) -> str:
    """How a command asks the same API server, whatever the operator's own kubeconfig names."""
    return f"kubectl --server={Kubeconfig.parse(kubeconfig).server}"


def _accept(metadata: str | None) -> dict[str, str]:
    """Asks for whole objects, or for nothing but their metadata."""
    if metadata is None:
        return {"Accept": "application/json"}
    return {"Accept": f"application/json;as=PartialObjectMetadata{metadata};g=meta.k8s.io;v=v1"}


def _said(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["message"])
    except (ValueError, KeyError, TypeError):
        return answer.text.strip()[:300]


def _named(items: list[Mapping[str, Any]], name: str, key: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next(item[key] for item in items if item["name"] == name)
    return found


def _decoded(value: str) -> str:
    return base64.b64decode(value).decode()


def _optional(user: Mapping[str, Any], key: str) -> str | None:
    return _decoded(user[key]) if key in user else None
