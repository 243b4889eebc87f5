"""A watched copy of all objects of one kind: one list and one watch, however many nodes there are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import httpx

from lab.kubernetes.api import Api, ApiError, Object

RETRY_SECONDS = 0.2
Key = tuple[str, str]
"""Namespace (empty where there is none) and name."""


class Informer:
    def __init__(self, api: Api, path: str, changed: Callable[[Key, Object | None], None]) -> None:
        self.objects: dict[Key, Object] = {}
        self.synced = asyncio.Event()
        self._api = api
        self._path = path
        self._changed = changed
        """Called with None when the object has gone."""

    async def run(self) -> None:
        while True:
            try:
                await self._follow(await self._list())
            except (httpx.TransportError, ApiError, ValueError):
                await asyncio.sleep(RETRY_SECONDS)

    async def _list(self) -> str:
        listed = await self._api.get(self._path)
        fresh = {key_of(item): item for item in listed.get("items") or []}
        for key in self.objects.keys() - fresh.keys():
            self._forget(key)
        for key, item in fresh.items():
            if self.objects.get(key, {}).get("metadata", {}).get("resourceVersion") != version_of(item):
                self._keep(key, item)
        self.synced.set()
        return str(listed["metadata"]["resourceVersion"])

    async def _follow(self, version: str) -> None:
        async for event in self._api.watch(self._path, version):
            item = event["object"]
            if event["type"] == "ERROR":
                raise ApiError(int(item.get("code") or 500), str(item.get("message")))
            if event["type"] == "DELETED":
                self._forget(key_of(item))
            elif event["type"] != "BOOKMARK":
                self._keep(key_of(item), item)

    def _keep(self, key: Key, item: Object) -> None:
        self.objects[key] = item
        self._changed(key, item)

    def _forget(self, key: Key) -> None:
        self.objects.pop(key, None)
        self._changed(key, None)


def key_of(item: Object) -> Key:
    metadata = item["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def version_of(item: Object) -> str:
    return str(item["metadata"]["resourceVersion"])
