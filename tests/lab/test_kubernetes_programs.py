"""Pods that stand for real programs: the Cilium operator, and what only it can do."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from lab.faults import Fault
from lab.kubernetes.api import MERGE
from lab.toolchain.programs import Programs
from tests.lab.kubernetes_world import World, admin, condition, named, single_node, until, workload
from tests.lab_kubernetes import CILIUM_CONFIG, agent_pod

pytestmark = [pytest.mark.lab, pytest.mark.asyncio(loop_scope="module")]

WORKLOADS = "/apis/apps/v1/namespaces/kube-system"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
SERVICES = "/api/v1/namespaces/default/services"
POOLS = "/apis/cilium.io/v2/ciliumloadbalancerippools"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """One node with agent and operator, as the chart would have them."""
    programs = Programs()
    await programs.resolve("cilium-operator")
    async with single_node(tmp_path_factory.mktemp("cluster"), programs) as made:
        await install(made)
        yield made


async def install(world: World) -> None:
    data = {**CILIUM_CONFIG, **OPERATOR_CONFIG}
    config = "/api/v1/namespaces/kube-system/configmaps"
    await world.api.create(config, named("ConfigMap", "cilium-config", data=data))
    for account in ("cilium", "cilium-operator"):
        await world.api.create("/api/v1/namespaces/kube-system/serviceaccounts", named("ServiceAccount", account))
        await world.api.create(BINDINGS, admin(account))
    await world.api.create(f"{WORKLOADS}/daemonsets", agents())
    await world.api.create(f"{WORKLOADS}/deployments", operators())


OPERATOR_CONFIG = {
    "cluster-name": "lab",
    "cluster-id": "1",
    "debug": "false",
    "enable-ipv4": "true",
    "enable-ipv6": "false",
    "enable-lb-ipam": "true",
    "enable-l2-announcements": "true",
    "identity-allocation-mode": "crd",
    "remove-cilium-node-taints": "true",
    "set-cilium-node-taints": "true",
    "set-cilium-is-up-condition": "true",
    "cilium-pod-labels": "k8s-app=cilium",
    "cilium-pod-namespace": "kube-system",
}


def agents() -> dict[str, Any]:
    pod = agent_pod(serviceAccountName="cilium")["spec"]
    return workload("DaemonSet", "cilium", {"k8s-app": "cilium"}, pod)


def operators() -> dict[str, Any]:
    labels = {"io.cilium/app": "operator", "name": "cilium-operator"}
    reference = {"name": "cilium-config", "key": "debug", "optional": True}
    container = {
        "name": "cilium-operator",
        "image": "quay.io/cilium/operator-generic:v1.20.1",
        "command": ["cilium-operator-generic"],
        "args": ["--config-dir=/tmp/cilium/config-map", "--debug=$(CILIUM_DEBUG)"],
        "env": [
            {"name": "K8S_NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "CILIUM_K8S_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
            {"name": "CILIUM_DEBUG", "valueFrom": {"configMapKeyRef": reference}},
            {"name": "KUBERNETES_SERVICE_HOST", "value": "localhost"},
            {"name": "KUBERNETES_SERVICE_PORT", "value": "7445"},
        ],
        "ports": [{"name": "health", "containerPort": 9234}],
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": "health"}},
        "volumeMounts": [{"name": "config", "mountPath": "/tmp/cilium/config-map"}],  # noqa: S108
    }
    apart = {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
    pod = {
        "hostNetwork": True,
        "serviceAccountName": "cilium-operator",
        "containers": [container],
        "volumes": [{"name": "config", "configMap": {"name": "cilium-config"}}],
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}},
    }
    return workload("Deployment", "cilium-operator", labels, pod, replicas=2)


async def operator_pods(world: World) -> list[dict[str, Any]]:
    return await world.pods("kube-system", "io.cilium/app=operator")


async def ready_operators(world: World) -> int:
    return sum(condition(pod, "Ready") == "True" for pod in await operator_pods(world))


async def test_the_operator_registers_the_resources_and_the_node_becomes_ready(world: World) -> None:
    async def ready() -> bool:
        return condition(await world.node("cp-1"), "Ready") == "True"

    await until(ready, what="the node")
    served = await world.api.get("/apis/cilium.io/v2")
    assert "ciliumnetworkpolicies" in {resource["name"] for resource in served["resources"]}


async def test_the_operator_says_that_cilium_is_up(world: World) -> None:
    async def up() -> bool:
        found = await world.node("cp-1")
        reasons = [item["reason"] for item in found["status"]["conditions"] if item["type"] == "NetworkUnavailable"]
        return reasons == ["CiliumIsUp"]

    await until(up, what="NetworkUnavailable=False")


async def test_pods_on_the_network_have_an_endpoint(world: World) -> None:
    """The operator restarts DNS pods without one."""

    async def known() -> bool:
        pods = await world.pods("kube-system", "k8s-app=kube-dns")
        path = "/apis/cilium.io/v2/namespaces/kube-system/ciliumendpoints"
        endpoints = {item["metadata"]["name"] for item in (await world.api.get(path))["items"]}
        return bool(pods) and {pod["metadata"]["name"] for pod in pods} <= endpoints

    await until(known, what="endpoints of the DNS pods")


async def test_the_second_replica_stays_pending_on_one_node(world: World) -> None:
    await until(lambda: ready_operators(world), what="one operator")
    pods = await operator_pods(world)
    pending = [pod for pod in pods if not pod["spec"].get("nodeName")]
    assert (len(pods), len(pending)) == (2, 1)
    assert condition(pending[0], "PodScheduled") == "False"


def service(name: str, labels: dict[str, str]) -> dict[str, Any]:
    made = named("Service", name, "default", spec={"type": "LoadBalancer", "ports": [{"port": 80}]})
    made["metadata"]["labels"] = labels
    return made


async def test_a_service_gets_an_address_only_from_a_pool_that_selects_it(world: World) -> None:
    pool = {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumLoadBalancerIPPool",
        "metadata": {"name": "gateway"},
        "spec": {
            "blocks": [{"start": "10.99.0.20", "stop": "10.99.0.29"}],
            "serviceSelector": {"matchLabels": {"pool": "gateway"}},
        },
    }
    await world.api.create(POOLS, pool)
    await world.api.create(SERVICES, service("other", {"pool": "none"}))
    await world.api.create(SERVICES, service("chosen", {"pool": "gateway"}))

    async def address(name: str) -> str:
        found = await world.api.get(f"{SERVICES}/{name}")
        ingress = found["status"]["loadBalancer"].get("ingress") or [{}]
        return str(ingress[0].get("ip") or "")

    assert (await until(lambda: address("chosen"), what="an address")).startswith("10.99.0.2")
    assert await address("other") == ""


async def test_a_stopped_operator_crash_loops_until_the_fault_goes(world: World) -> None:
    async def none() -> bool:
        return await ready_operators(world) == 0

    world.faults.add(Fault(name="operator-down", node="cilium-operator"))
    await until(none, what="no operator")
    world.faults.remove("operator-down")
    await until(lambda: ready_operators(world), what="the operator again")


def processes(directory: Path) -> list[int]:
    """Those that work in a pod's directory."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (entry / "cwd").readlink().is_relative_to(directory / "pods"):
                found.append(int(entry.name))
    return found


async def test_the_process_ends_with_its_pod(world: World) -> None:
    assert len(processes(world.cluster.directory)) == 1
    await world.api.patch(f"{WORKLOADS}/deployments/cilium-operator", {"spec": {"replicas": 0}}, kind=MERGE)

    async def gone() -> bool:
        return not await operator_pods(world)

    await until(gone, what="the end of both pods")
    assert processes(world.cluster.directory) == []
