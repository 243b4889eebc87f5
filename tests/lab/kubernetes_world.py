"""One cluster and its API, as the lab tests of the Kubernetes emulator look at them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from lab.faults import Faults
from lab.kubernetes import Cluster, EndpointPorts
from lab.kubernetes.api import Api
from lab.kubernetes.cilium_agent import REQUIRED
from lab.kubernetes.process import free_port
from lab.pace import Pace
from lab.request_log import RequestLog
from lab.toolchain.programs import Programs
from tests.lab_kubernetes import CILIUM_CONFIG, agent_pod, machine_config, node

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


def definitions() -> list[dict[str, Any]]:
    """Bare stand-ins for what the real operator registers; the agent only asks whether they are served."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    definitions = []
    for version, plurals in REQUIRED.items():
        for plural in plurals:
            kind = "CiliumNode" if plural == "ciliumnodes" else plural.capitalize()
            names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
            served = [{"name": version, "served": True, "storage": True, "schema": schema}]
            definitions.append(
                {
                    "apiVersion": "apiextensions.k8s.io/v1",
                    "kind": "CustomResourceDefinition",
                    "metadata": {"name": f"{plural}.cilium.io"},
                    "spec": {"group": "cilium.io", "names": names, "scope": "Cluster", "versions": served},
                }
            )
    return definitions


def admin(account: str, namespace: str = "kube-system") -> dict[str, Any]:
    """Everything allowed; what a chart's own rules would be is not what these tests are about."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": account},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
    }


def workload(
    kind: str, name: str, labels: dict[str, str], pod: dict[str, Any], namespace: str = "kube-system", **more: Any
) -> dict[str, Any]:
    template = {"metadata": {"labels": labels}, "spec": {**pod, "tolerations": [{"operator": "Exists"}]}}
    spec = {"selector": {"matchLabels": labels}, "template": template, **more}
    return {**named(kind, name, namespace, spec=spec), "apiVersion": "apps/v1"}


async def bring_up_network(world: World) -> None:
    """Agents that are content with bare definitions of Cilium's resources."""
    config = named("ConfigMap", "cilium-config", data=CILIUM_CONFIG)
    await world.api.create("/api/v1/namespaces/kube-system/configmaps", config)
    await world.api.create("/api/v1/namespaces/kube-system/serviceaccounts", named("ServiceAccount", "cilium"))
    await world.api.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", admin("cilium"))
    for definition in definitions():
        await world.api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    pod = agent_pod(serviceAccountName="cilium")["spec"]
    agents = workload("DaemonSet", "cilium", {"k8s-app": "cilium"}, pod)
    await world.api.create("/apis/apps/v1/namespaces/kube-system/daemonsets", agents)


@contextlib.asynccontextmanager
async def single_node(directory: Path, programs: Programs) -> AsyncIterator[World]:
    """A control plane that also takes ordinary pods; without a network still."""
    faults, ports = Faults(), EndpointPorts(api=free_port(), kubeprism=free_port())
    log = RequestLog(directory / "requests.jsonl")
    cluster = Cluster(directory=directory, programs=programs, faults=faults, pace=Pace(), log=log, ports=ports)
    try:
        config = machine_config(allowSchedulingOnControlPlanes=True)
        await cluster.bootstrap("cp-1", "127.0.0.11", config)
        await cluster.start_kubelet(node(config=config))
        await asyncio.wait_for(cluster.ready.wait(), DEADLINE)
        secrets = directory / "secrets"
        url = f"https://127.0.0.11:{ports.api}"
        api = Api(url, ca=secrets / "ca.crt", certificate=secrets / "lab.crt", key=secrets / "lab.key")
        await until(lambda: _serves(api), what="the API server's address")
        yield World(cluster, faults, ports, api)
        await api.close()
    finally:
        await cluster.close()


async def _serves(api: Api) -> bool:
    try:
        return await api.ready()
    except httpx.TransportError:
        return False
