"""One cluster and its API, as the lab tests of the Kubernetes emulator look at them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from lab.faults import Faults
from lab.kubernetes import Cluster, EndpointPorts
from lab.kubernetes.api import Api

DEADLINE = 60.0


class World:
    """A cluster, the faults it is asked about, and its API."""

    def __init__(self, cluster: Cluster, faults: Faults, ports: EndpointPorts, api: Api) -> None:
        self.cluster = cluster
        self.faults = faults
        self.ports = ports
        self.api = api

    async def node(self, name: str) -> dict[str, Any]:
        return await self.api.get(f"/api/v1/nodes/{name}")

    async def pods(self, namespace: str, label: str) -> list[dict[str, Any]]:
        listed = await self.api.get(f"/api/v1/namespaces/{namespace}/pods?labelSelector={label}")
        return list(listed["items"])


async def until(check: Callable[[], Awaitable[Any]], *, what: str) -> Any:
    """Poll until the check gives something; the test fails with what it waited for."""
    try:
        async with asyncio.timeout(DEADLINE):
            while True:
                if found := await check():
                    return found
                await asyncio.sleep(0.1)
    except TimeoutError:
        pytest.fail(f"still waiting for {what}")


def condition(item: dict[str, Any], kind: str) -> str | None:
    conditions = item.get("status", {}).get("conditions") or []
    return next((entry["status"] for entry in conditions if entry["type"] == kind), None)


def waiting(pod: dict[str, Any]) -> dict[str, Any]:
    statuses = pod.get("status", {}).get("containerStatuses") or [{}]
    state: dict[str, Any] = statuses[0].get("state", {}).get("waiting") or {}
    return state


def named(kind: str, name: str, namespace: str = "kube-system", **content: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}, **content}
