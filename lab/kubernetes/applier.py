"""Server-side apply of any object, retried until what it needs is there, as Talos applies its manifests."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import httpx

from lab.kubernetes.api import APPLY, Api, ApiError, Object

RETRY_SECONDS = 0.5


class Applier:
    def __init__(self, api: Api, *, manager: str = "talos") -> None:
        self._api = api
        self._manager = manager
        self._resources: dict[tuple[str, str], tuple[str, bool]] = {}
        """Plural name and whether it is namespaced, by version and kind."""

    async def apply_all(self, objects: Sequence[Object]) -> None:
        """A kind whose definition comes later, or a webhook that is not up yet, is tried again."""
        waiting = list(objects)
        while waiting:
            waiting = [document for document in waiting if not await self._applied(document)]
            if waiting:
                await asyncio.sleep(RETRY_SECONDS)

    async def _applied(self, document: Object) -> bool:
        try:
            path = await self._path(document)
            await self._api.patch(f"{path}?fieldManager={self._manager}&force=true", document, kind=APPLY)
        except (ApiError, LookupError, httpx.TransportError):
            return False
        return True

    async def _path(self, document: Object) -> str:
        version, kind, metadata = document["apiVersion"], document["kind"], document["metadata"]
        plural, namespaced = await self._resource(version, kind)
        base = _base(version)
        if namespaced:
            base = f"{base}/namespaces/{metadata.get('namespace', 'default')}"
        return f"{base}/{plural}/{metadata['name']}"

    async def _resource(self, version: str, kind: str) -> tuple[str, bool]:
        if (version, kind) not in self._resources:
            listed = await self._api.get(_base(version))
            for resource in listed["resources"]:
                if "/" not in resource["name"]:
                    self._resources[version, resource["kind"]] = (resource["name"], resource["namespaced"])
        return self._resources[version, kind]


def _base(version: str) -> str:
    return f"/apis/{version}" if "/" in version else f"/api/{version}"
