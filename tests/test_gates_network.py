"""Gates on Cilium, its pools and mesh, DNS and the cloud controller manager."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from gates.pools import came_late
from tests.gates_kubernetes import FakeKubernetes, Object, condition, serving
from tests.gates_objects import NODES, agent, all_nodes, custom, daemon_set, deployment, node_object, pod
from tests.gates_runs import evidence, findings, noticed, observed

NODE_PATH, POD_PATH = "/api/v1/nodes", "/api/v1/pods"
DEPLOYMENTS, DAEMON_SETS = "/apis/apps/v1/deployments", "/apis/apps/v1/daemonsets"
CILIUM_NODES, POOLS = "/apis/cilium.io/v2/ciliumnodes", "/apis/cilium.io/v2/ciliumloadbalancerippools"
CLASSES, CRDS = (
    "/apis/gateway.networking.k8s.io/v1/gatewayclasses",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
)


@pytest.fixture
async def api() -> AsyncIterator[FakeKubernetes]:
    async with serving() as server:
        all_nodes(server)
        server.put(DAEMON_SETS, daemon_set("kube-system", "cilium", 2))
        server.put(DEPLOYMENTS, deployment("kube-system", "cilium-operator", replicas=2))
        server.put(POD_PATH, agent("cp-1"), agent("w-1"))
        server.put(CILIUM_NODES, custom("cp-1"), custom("w-1"))
        yield server


def target(api: FakeKubernetes, **more: Any) -> dict[str, Any]:
    return {"kubeconfig": api.kubeconfig(), **more}


def cilium(api: FakeKubernetes) -> dict[str, Any]:
    return target(api, nodes=NODES, namespace="kube-system")


# G9


async def test_workloads_on_every_node_and_one_operator_of_two_is_normal(api: FakeKubernetes) -> None:
    told = await evidence("cilium-workloads", cilium(api))
    assert told[0] == "DaemonSet cilium: desired = updated = available = 2"
    assert told[1].startswith("Deployment cilium-operator: 1 of 2 available (normal on one node")


async def test_cilium_not_installed(api: FakeKubernetes) -> None:
    api.remove(DAEMON_SETS, "cilium", "kube-system")
    api.remove(DEPLOYMENTS, "cilium-operator", "kube-system")
    told = observed(await findings("cilium-workloads", cilium(api)))
    assert "no DaemonSet kube-system/cilium" in told
    assert "no Deployment kube-system/cilium-operator" in told


@pytest.mark.parametrize(
    ("item", "cause"),
    [
        (daemon_set("kube-system", "cilium", 1), "a node has not registered"),
        (daemon_set("kube-system", "cilium", 3), "more nodes than the stack file names"),
        (daemon_set("kube-system", "cilium", 2, ready=1), "agents start"),
    ],
    ids=["too few", "too many", "starting"],
)
async def test_counts_that_are_not_the_stack_files(api: FakeKubernetes, item: Object, cause: str) -> None:
    api.put(DAEMON_SETS, item)
    (found,) = await findings("cilium-workloads", cilium(api))
    assert cause in found.cause


async def test_a_daemon_set_whose_status_is_of_yesterday_does_not_count(api: FakeKubernetes) -> None:
    item = daemon_set("kube-system", "cilium", 2)
    item["metadata"]["generation"] = 2
    api.put(DAEMON_SETS, item)
    assert await findings("cilium-workloads", cilium(api))


async def test_a_crash_looping_agent_names_its_node(api: FakeKubernetes) -> None:
    api.put(POD_PATH, agent("w-1", ready=False, waiting={"reason": "CrashLoopBackOff", "message": "back-off 10s"}))
    api.put(DAEMON_SETS, daemon_set("kube-system", "cilium", 2, ready=1))
    found = await findings("cilium-workloads", cilium(api))
    assert [each.subject for each in found] == ["", "w-1"]
    assert found[1].observed == "its Cilium agent cilium-w-1: CrashLoopBackOff: back-off 10s"


async def test_an_operator_that_is_down_shows_its_pods(api: FakeKubernetes) -> None:
    api.put(DEPLOYMENTS, deployment("kube-system", "cilium-operator", available=False, replicas=2))
    waiting = {"reason": "ImagePullBackOff"}
    api.put(POD_PATH, pod("kube-system", "cilium-operator-x", "cp-1", ready=False, waiting=waiting))
    (found,) = await findings("cilium-workloads", cilium(api))
    assert found.observed.splitlines() == [
        "Deployment kube-system/cilium-operator: 0 of 2 available, Available=False (MinimumReplicas)",
        "pod cilium-operator-x: ImagePullBackOff",
    ]


async def test_an_operator_that_is_being_replaced(api: FakeKubernetes) -> None:
    item = deployment("kube-system", "cilium-operator")
    item["metadata"]["generation"] = 3
    api.put(DEPLOYMENTS, item)
    (found,) = await findings("cilium-workloads", cilium(api))
    assert found.cause == "it is being replaced"


# G11


async def test_agents_ready_on_every_node(api: FakeKubernetes) -> None:
    assert len(await evidence("cilium-agents", cilium(api))) == 2


async def test_an_agent_that_comes_up_is_noticed(api: FakeKubernetes) -> None:
    unready = agent("w-1", ready=False)
    unready["status"] |= {"phase": "Running", "conditions": [condition("Ready", "False", message="no answer")]}
    api.put(POD_PATH, unready)
    assert "cilium-w-1: Running, not ready: no answer" in observed(await findings("cilium-agents", cilium(api)))
    assert (await noticed("cilium-agents", cilium(api), lambda: api.put(POD_PATH, agent("w-1")))).healthy


async def test_a_node_without_agent(api: FakeKubernetes) -> None:
    api.remove(POD_PATH, "cilium-w-1", "kube-system")
    (found,) = await findings("cilium-agents", cilium(api))
    assert (found.subject, found.observed) == ("w-1", "no Cilium agent pod")


async def test_a_network_that_nobody_reported_up(api: FakeKubernetes) -> None:
    node = node_object("w-1", "127.0.0.2")
    node["status"]["conditions"] = [condition("NetworkUnavailable", "False", reason="RouteCreated")]
    api.put(NODE_PATH, node)
    (found,) = await findings("cilium-agents", cilium(api))
    assert found.observed == "NetworkUnavailable=False (RouteCreated)"


async def test_a_node_cilium_does_not_know(api: FakeKubernetes) -> None:
    api.remove(CILIUM_NODES, "w-1")
    (found,) = await findings("cilium-agents", cilium(api))
    assert found.observed == "no CiliumNode of this name"


async def test_an_agent_on_a_node_that_is_gone(api: FakeKubernetes) -> None:
    api.remove(NODE_PATH, "w-1")
    (found,) = await findings("cilium-agents", cilium(api))
    assert found.observed == "not registered with the API server"


# G13a


def network(api: FakeKubernetes) -> dict[str, Any]:
    configured = {"pod_cidr": "10.244.0.0/16", "native_routing_cidr": "10.244.0.0/14"}
    return target(api, nodes=NODES, cluster_name="infra", cluster_id=1.0, **configured)


def settings(**changed: str) -> Object:
    data = {
        "ipv4-native-routing-cidr": "10.244.0.0/14",
        "cluster-name": "infra",
        "cluster-id": "1",
        "ipam": "kubernetes",
    }
    return custom("cilium-config", "kube-system", data={**data, **changed})


def ranges(api: FakeKubernetes, worker: list[str]) -> None:
    api.put(NODE_PATH, node_object("cp-1", "127.0.0.1", podCIDRs=["10.244.0.0/24"]))
    api.put(NODE_PATH, node_object("w-1", "127.0.0.2", podCIDRs=worker))


async def test_pod_network_as_configured(api: FakeKubernetes) -> None:
    ranges(api, ["10.244.1.0/24"])
    api.put("/api/v1/configmaps", settings())
    assert "w-1: 10.244.1.0/24" in await evidence("pod-network", network(api))


@pytest.mark.parametrize(
    ("given", "told"),
    [(["10.96.1.0/24"], "its pod range is 10.96.1.0/24, expected inside 10.244.0.0/16"), ([], "not assigned")],
    ids=["elsewhere", "none"],
)
async def test_a_pod_range_outside_the_pod_network(api: FakeKubernetes, given: list[str], told: str) -> None:
    ranges(api, given)
    api.put("/api/v1/configmaps", settings())
    (found,) = await findings("pod-network", network(api))
    assert found.subject == "w-1"
    assert told in found.observed


async def test_cilium_with_other_values_than_the_stack_file(api: FakeKubernetes) -> None:
    ranges(api, ["10.244.1.0/24"])
    api.put("/api/v1/configmaps", settings(**{"cluster-id": "2"}))
    assert observed(await findings("pod-network", network(api))) == "cilium-config cluster-id is 2, expected 1"


async def test_cilium_without_settings(api: FakeKubernetes) -> None:
    ranges(api, ["10.244.1.0/24"])
    api.put("/api/v1/configmaps")
    assert "no ConfigMap cilium-config" in observed(await findings("pod-network", network(api)))


# G12c


def pool(name: str, *, counted: bool = True, conflict: str = "") -> Object:
    conditions = [condition("cilium.io/IPsTotal", "Unknown", message="10")] if counted else []
    conditions += [condition("cilium.io/PoolConflict", message=conflict)] if conflict else []
    return custom(name, status={"conditions": conditions})


async def test_pools_without_conflict(api: FakeKubernetes) -> None:
    api.put(POOLS, pool("gateway"))
    assert await evidence("lb-pools", target(api, pools=["gateway"])) == ("pool gateway: no conflict",)


@pytest.mark.parametrize(
    ("items", "told"),
    [
        ([], "no load-balancer pool gateway"),
        ([pool("gateway", counted=False)], "has not looked at it yet"),
        ([pool("gateway", conflict="overlaps with mesh")], "overlaps with mesh"),
    ],
    ids=["missing", "unseen", "conflicting"],
)
async def test_pools_that_cannot_be_used(api: FakeKubernetes, items: list[Object], told: str) -> None:
    api.put(POOLS, *items)
    assert told in observed(await findings("lb-pools", target(api, pools=["gateway"], gateway_class=None)))


def gateway(api: FakeKubernetes, accepted: str | None, *, crd: str) -> dict[str, Any]:
    conditions = [condition("Accepted", accepted)] if accepted else []
    api.put(CLASSES, custom("cilium", status={"conditions": conditions}))
    definition = custom("gatewayclasses.gateway.networking.k8s.io")
    definition["metadata"]["creationTimestamp"] = crd
    api.put(CRDS, definition)
    operator = pod("kube-system", "cilium-operator-a", "cp-1")
    operator["metadata"]["labels"] = {"name": "cilium-operator"}
    operator["status"]["containerStatuses"] = [{"state": {"running": {"startedAt": "2026-11-18T10:00:05Z"}}}]
    api.put(POD_PATH, operator)
    return target(api, pools=[], gateway_class="cilium")


async def test_accepted_gateway_class(api: FakeKubernetes) -> None:
    told = await evidence("lb-pools", gateway(api, "True", crd="2026-11-18T09:00:00Z"))
    assert told == ("GatewayClass cilium: Accepted",)


async def test_definitions_that_came_after_the_operator_are_said_to_have(api: FakeKubernetes) -> None:
    (found,) = await findings("lb-pools", gateway(api, "Unknown", crd="2026-11-18T11:00:00Z"))
    assert "came after the operator" in found.cause
    assert any("rollout restart" in command for command in found.look)


async def test_a_class_that_is_not_accepted_for_another_reason(api: FakeKubernetes) -> None:
    (found,) = await findings("lb-pools", gateway(api, None, crd="2026-11-18T09:00:00Z"))
    assert found.observed == "GatewayClass cilium: no condition Accepted yet"
    assert "gatewayAPI.enabled" in found.cause


async def test_no_gateway_class_at_all(api: FakeKubernetes) -> None:
    asked = gateway(api, "True", crd="2026-11-18T09:00:00Z")
    api.remove(CLASSES, "cilium")
    assert "does not exist" in observed(await findings("lb-pools", asked))


def test_an_operator_that_restarted_has_seen_the_definitions() -> None:
    definition = {"metadata": {"creationTimestamp": "2026-11-18T10:30:00Z"}}
    early, late = pod("a", "x", "n"), pod("a", "y", "n")
    late["status"]["startTime"] = "2026-11-18T11:00:00Z"
    assert came_late([definition], [early])
    assert not came_late([definition], [early, late])
    assert not came_late([], [early])


# G12a, G11b


def slices(*, ready: bool = True, port: int = 53) -> Object:
    endpoint = {"addresses": ["10.244.0.9"], "conditions": {"ready": ready}}
    return custom("coredns-x", "kube-system", ports=[{"port": port}], endpoints=[endpoint])


async def test_dns_available_with_endpoints(api: FakeKubernetes) -> None:
    api.put(DEPLOYMENTS, deployment("kube-system", "coredns"))
    api.put("/apis/discovery.k8s.io/v1/endpointslices", slices())
    told = await evidence("dns", target(api, namespace="kube-system", deployment="coredns"))
    assert "DNS behind 10.244.0.9" in told


@pytest.mark.parametrize("behind", [slices(ready=False), slices(port=9153)], ids=["not ready", "other port"])
async def test_dns_with_nothing_behind_it(api: FakeKubernetes, behind: Object) -> None:
    api.put(DEPLOYMENTS, deployment("kube-system", "coredns", available=False))
    api.put("/apis/discovery.k8s.io/v1/endpointslices", behind)
    asked = target(api, namespace="kube-system", deployment="coredns")
    found = await findings("dns", asked)
    assert found[0].cause == "its pods do not become ready"
    server = pod("kube-system", "coredns-x", "cp-1", ready=False)
    server["status"]["phase"] = "Running"
    api.put(POD_PATH, server)
    found = await findings("dns", asked)
    assert "BPF masquerading" in found[0].cause
    assert "no ready endpoint for port 53" in found[1].observed


def initialised(name: str, address: str, **changed: Any) -> Object:
    node = node_object(name, address, providerID=f"proxmox://home/{name}", **changed)
    node["metadata"]["labels"] |= {"topology.kubernetes.io/region": "home", "topology.kubernetes.io/zone": "atlas"}
    return node


async def test_nodes_taken_in_by_the_cloud_controller(api: FakeKubernetes) -> None:
    api.put(NODE_PATH, initialised("cp-1", "127.0.0.1"), initialised("w-1", "127.0.0.2"))
    assert "w-1: proxmox://home/w-1" in await evidence("cloud-provider", target(api, nodes=NODES))


async def test_nodes_that_wait_for_the_cloud_controller(api: FakeKubernetes) -> None:
    taint = {"key": "node.cloudprovider.kubernetes.io/uninitialized", "effect": "NoSchedule"}
    api.put(NODE_PATH, initialised("cp-1", "127.0.0.1", taints=[taint]), node_object("w-1", "127.0.0.2"))
    first, second = await findings("cloud-provider", target(api, nodes=NODES))
    assert first.observed == "lacks its initialisation"
    assert "a provider id, the label topology.kubernetes.io/region" in second.observed
    api.remove(NODE_PATH, "w-1")
    assert "a Node object" in observed(await findings("cloud-provider", target(api, nodes=NODES)))


# G19


def mesh(api: FakeKubernetes, *, ingress: bool = True, peers: tuple[str, ...] = ("apps",)) -> dict[str, Any]:
    api.put(DEPLOYMENTS, deployment("kube-system", "clustermesh-apiserver"))
    balancer = {"ingress": [{"ip": "10.25.11.100"}]} if ingress else {}
    api.put("/api/v1/services", custom("clustermesh-apiserver", "kube-system", status={"loadBalancer": balancer}))
    api.put("/api/v1/secrets", custom("cilium-clustermesh", "kube-system", data=dict.fromkeys(peers, "eA==")))
    return target(api, namespace="kube-system", clusters=[{"name": "apps", "nodes": 6}])


async def test_mesh_served_and_connected(api: FakeKubernetes) -> None:
    told = await evidence("mesh", mesh(api))
    assert told == (
        "clustermesh-apiserver: Available at 10.25.11.100",
        "agents hold the way to apps (6 nodes)",
    )


async def test_mesh_without_address_or_way(api: FakeKubernetes) -> None:
    asked = mesh(api, ingress=False, peers=())
    api.put(DAEMON_SETS, daemon_set("kube-system", "cilium", 2, ready=1))
    told = observed(await findings("mesh", asked)).splitlines()
    assert told[0] == "Service clustermesh-apiserver has no load-balancer address"
    assert told[1].startswith("DaemonSet cilium: desired 2")
    assert told[2] == "the agents know no way to cluster apps"
