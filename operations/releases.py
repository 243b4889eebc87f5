"""Whether a Helm release whose installation was cut short is there, as its record in the cluster tells it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from operations.pending import Action, Finding

LOOKS = 30
"""Seconds an installation may still be under way: it waits for nothing."""


class Api(Protocol):
    async def get(self, path: str, /, *, metadata_only: bool = False, **query: str) -> dict[str, Any]: ...


@dataclass(frozen=True, kw_only=True)
class Releases:
    api: Api
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def release(self, inputs: Mapping[str, Any]) -> Finding:
        namespace, name = str(inputs["namespace"]), str(inputs["name"])
        identity = f"{namespace}/{name}"
        statuses: list[str] = []
        for _ in range(LOOKS):
            statuses = await self._statuses(namespace, name)
            if "deployed" in statuses:
                told = f"the release {identity} is installed"
                return Finding(action=Action.ADOPT, observed=told, identity=identity)
            await self.pause(1.0)
        if not statuses:
            return Finding(action=Action.AGAIN, observed=f"there is no release {identity}")
        told = f"the release {identity} is {statuses[-1]}"
        return Finding(action=Action.ANEW, observed=told, identity=identity)

    async def _statuses(self, namespace: str, name: str) -> list[str]:
        """Of every revision; Helm keeps them as labels of Secrets."""
        path = f"/api/v1/namespaces/{namespace}/secrets"
        listed = await self.api.get(path, metadata_only=True, labelSelector=f"owner=helm,name={name}")
        return [str(item["metadata"].get("labels", {}).get("status", "")) for item in listed["items"]]
