"""Gates on nodes, definitions and prerequisites: healthy, waiting, and each failure by name."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from gates.registry import run
from tests.gates_kubernetes import FakeKubernetes, condition, serving
from tests.gates_objects import CP, NODES, WORKER, all_nodes, custom, node_object, pod
from tests.gates_runs import evidence, fatal, findings, noticed, observed, untold
from tests.talos_pki import TestAuthority

NODE_PATH = "/api/v1/nodes"
ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"


@pytest.fixture
async def api() -> AsyncIterator[FakeKubernetes]:
    async with serving("127.0.0.1", "127.0.0.2") as server:
        server.singles[ACCOUNT] = custom("default", "default")
        yield server


def target(api: FakeKubernetes, **more: Any) -> dict[str, Any]:
    return {"kubeconfig": api.kubeconfig(), **more}


# G5, G6


async def test_api_is_ready_on_every_control_plane(api: FakeKubernetes) -> None:
    told = await evidence("kube-api", target(api, nodes=NODES))
    assert [line.split(":")[0] for line in told] == ["cp-1", "w-1"]
    assert f"https://127.0.0.2:{api.port}/readyz ok" in told[1]


async def test_api_that_answers_on_one_control_plane_only_is_named(api: FakeKubernetes) -> None:
    third = {**CP, "name": "cp-3", "address": "127.0.0.3"}
    (found,) = await findings("kube-api", target(api, nodes=[CP, third]))
    assert found.subject == "cp-3"
    assert "connection refused" in found.observed
    assert "talosctl -n 127.0.0.3 -e 127.0.0.3 get staticpodstatus" in found.look


async def test_failing_readiness_checks_are_the_news(api: FakeKubernetes) -> None:
    api.failures["/readyz"] = (500, "[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed")
    found = await findings("kube-api", target(api, nodes=[CP]))
    assert "[-]etcd failed" in observed(found)
    assert "[+]ping" not in observed(found)


async def test_missing_default_account_is_waited_for(api: FakeKubernetes) -> None:
    del api.singles[ACCOUNT]
    (found,) = await findings("kube-api", target(api, nodes=[CP]))
    assert "default/default does not exist" in found.observed
    assert "controller-manager" in found.cause


async def test_credentials_that_may_not_create_pods(api: FakeKubernetes) -> None:
    api.allowed = False
    assert "may not create pods" in observed(await findings("kube-api", target(api, nodes=[CP])))


async def test_api_of_another_cluster_fails_at_once(api: FakeKubernetes) -> None:
    foreign = {"nodes": [CP], "kubeconfig": api.kubeconfig(authority=TestAuthority("other"))}
    (found,) = await fatal("kube-api", foreign)
    assert found.subject == "cp-1"


async def test_vip_is_asked_by_its_own_address(api: FakeKubernetes) -> None:
    assert f"https://127.0.0.2:{api.port}/readyz ok" in await evidence("vip", target(api, vip="127.0.0.2"))


async def test_dead_vip_is_waited_for(api: FakeKubernetes) -> None:
    (found,) = await findings("vip", target(api, vip="127.0.0.9"))
    assert "VIP https://127.0.0.9" in found.observed
    assert any("get operatorspecs" in command for command in found.look)


async def test_vip_of_another_cluster_fails_at_once(api: FakeKubernetes) -> None:
    await fatal("vip", {"vip": "127.0.0.1", "kubeconfig": api.kubeconfig(authority=TestAuthority("other"))})


# G7


async def test_registration_is_noticed_while_waiting(api: FakeKubernetes) -> None:
    api.put(NODE_PATH, node_object("cp-1", "127.0.0.1"))
    outcome = await noticed(
        "nodes-registered",
        target(api, nodes=NODES),
        lambda: api.put(NODE_PATH, node_object("w-1", "127.0.0.2", ready="False")),
    )
    assert outcome.healthy


async def test_a_missing_node_is_named_with_its_machine(api: FakeKubernetes) -> None:
    api.put(NODE_PATH, node_object("cp-1", "127.0.0.1"))
    (found,) = await findings("nodes-registered", target(api, nodes=NODES))
    assert (found.subject, found.observed) == ("w-1", "not registered with the API server")
    assert str(found.node) == "w-1 (127.0.0.2, VM 1121 on boreas)"


async def test_a_node_under_a_wrong_name_is_not_called_missing(api: FakeKubernetes) -> None:
    api.put(NODE_PATH, node_object("cp-1", "127.0.0.1"), node_object("talos-x7f", "127.0.0.2"))
    (found,) = await findings("nodes-registered", target(api, nodes=NODES))
    assert (found.subject, found.observed) == ("w-1", "registered as talos-x7f")


async def test_a_renamed_machine_that_left_its_old_node_is_a_double(api: FakeKubernetes) -> None:
    all_nodes(api)
    api.put(NODE_PATH, node_object("old", "127.0.0.2"))
    (found,) = await findings("nodes-registered", target(api, nodes=NODES))
    assert "also that of the node old" in found.observed


async def test_a_node_with_another_address(api: FakeKubernetes) -> None:
    api.put(NODE_PATH, node_object("cp-1", "127.0.0.1"), node_object("w-1", "10.9.9.9"))
    (found,) = await findings("nodes-registered", target(api, nodes=NODES))
    assert found.observed == "registered with the address 10.9.9.9"


async def test_an_unexpected_node_is_named_with_the_way_to_remove_it(api: FakeKubernetes) -> None:
    all_nodes(api)
    api.put(NODE_PATH, node_object("w-9", "127.0.0.9"))
    (found,) = await findings("nodes-registered", target(api, nodes=NODES))
    assert found.observed == "unexpected node w-9 (127.0.0.9)"
    assert any("delete node w-9" in command for command in found.look)


# G10


async def test_ready_nodes(api: FakeKubernetes) -> None:
    all_nodes(api)
    assert await evidence("nodes-ready", target(api, nodes=NODES)) == (
        "cp-1: Ready, schedulable",
        "w-1: Ready, schedulable",
    )


@pytest.mark.parametrize(
    ("node", "told", "cause"),
    [
        (node_object("w-1", "127.0.0.2", ready="Unknown"), "Ready=Unknown (KubeletNotReady)", "stopped reporting"),
        (node_object("w-1", "127.0.0.2", ready="False"), "Ready=False (KubeletNotReady)", "says so itself"),
        (node_object("w-1", "127.0.0.2", unschedulable=True), "cordoned", "drained"),
        (
            node_object("w-1", "127.0.0.2", taints=[{"key": "node.cilium.io/agent-not-ready"}]),
            "tainted node.cilium.io/agent-not-ready",
            "no Cilium agent",
        ),
    ],
    ids=["unknown", "not ready", "cordoned", "tainted"],
)
async def test_what_keeps_a_node_from_use_is_told(api: FakeKubernetes, node: Any, told: str, cause: str) -> None:
    api.put(NODE_PATH, node_object("cp-1", "127.0.0.1"), node)
    (found,) = await findings("nodes-ready", target(api, nodes=NODES))
    assert (found.subject, found.observed) == ("w-1", told)
    assert cause in found.cause


async def test_a_node_without_network_blames_the_cni_and_offers_the_ladder(api: FakeKubernetes) -> None:
    node = node_object("w-1", "127.0.0.2")
    node["status"]["conditions"] = [
        condition("Ready", "False", reason="KubeletNotReady", message="cni plugin not initialized")
    ]
    api.put(NODE_PATH, node_object("cp-1", "127.0.0.1"), node)
    (found,) = await findings("nodes-ready", target(api, nodes=NODES))
    assert "Cilium agent" in found.cause
    assert found.ladder


# G8b, G8


def prerequisites(api: FakeKubernetes) -> dict[str, Any]:
    return target(
        api,
        namespaces=["csi"],
        secrets=[{"namespace": "csi", "name": "pull"}],
        configmaps=[{"namespace": "csi", "name": "settings"}],
    )


async def test_prerequisites_in_place(api: FakeKubernetes) -> None:
    api.put("/api/v1/namespaces", custom("csi", status={"phase": "Active"}))
    api.put("/api/v1/secrets", custom("pull", "csi"))
    api.put("/api/v1/configmaps", custom("settings", "csi"))
    assert "namespaces Active: csi" in await evidence("prerequisites", prerequisites(api))


async def test_every_missing_prerequisite_is_named(api: FakeKubernetes) -> None:
    api.put("/api/v1/namespaces", custom("csi", status={"phase": "Terminating"}))
    api.put("/api/v1/secrets", custom("pull", "elsewhere"))
    api.put("/api/v1/configmaps")
    told = observed(await findings("prerequisites", prerequisites(api)))
    assert told.splitlines() == [
        "namespace csi is Terminating",
        "Secret csi/pull is missing",
        "ConfigMap csi/settings is missing",
    ]


CRD_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ROUTES = "tlsroutes.gateway.networking.k8s.io"


def definition(name: str = ROUTES, *, versions: tuple[str, ...] = ("v1",), established: str = "True") -> Any:
    spec = {"versions": [{"name": version, "served": True} for version in versions]}
    return custom(name, spec=spec, status={"conditions": [condition("Established", established)]})


def crds(api: FakeKubernetes) -> dict[str, Any]:
    return target(api, crds=[{"name": ROUTES, "versions": ["v1"]}])


async def test_definitions_established_and_served(api: FakeKubernetes) -> None:
    api.put(CRD_PATH, definition())
    api.singles["/apis/gateway.networking.k8s.io/v1"] = {"resources": [{"name": "tlsroutes"}]}
    assert await evidence("crds", crds(api)) == (f"{ROUTES} serves v1",)


@pytest.mark.parametrize(
    ("items", "told"),
    [
        ([], "no definition"),
        ([definition(established="False")], "Established=False"),
        ([definition(versions=("v1alpha2", "v1alpha3"))], "serves v1alpha2, v1alpha3, but v1 is needed"),
        ([definition()], "discovery does not list gateway.networking.k8s.io/v1 yet"),
    ],
    ids=["missing", "not established", "wrong version", "not discovered"],
)
async def test_definitions_that_cannot_be_used(api: FakeKubernetes, items: list[Any], told: str) -> None:
    api.put(CRD_PATH, *items)
    assert told in observed(await findings("crds", crds(api)))


# diagnostics


async def test_a_failed_cluster_gate_gathers_pods_events_and_conditions(api: FakeKubernetes) -> None:
    api.put(NODE_PATH, node_object("cp-1", "127.0.0.1"))
    api.put("/api/v1/pods", pod("a", "x", "cp-1"), pod("a", "y", None, ready=False, waiting={"reason": "ErrImagePull"}))
    unscheduled = pod("a", "z", None, ready=False)
    unscheduled["status"]["conditions"].append(condition("PodScheduled", "False", message="0/1 nodes are available"))
    api.put("/api/v1/pods", unscheduled)
    event = {"involvedObject": {"kind": "Pod", "name": "x"}, "reason": "BackOff", "message": "again"}
    api.put("/api/v1/events", custom("e", "a", lastTimestamp="2026-01-01T00:00:00Z", **event))
    outcome = await run("nodes-registered", target(api, nodes=[CP, WORKER]), 0.3, untold)
    assert outcome.extra["pods by node"] == {
        "(not scheduled)": ["a/y ErrImagePull", "a/z Pending: 0/1 nodes are available"],
        "cp-1": ["a/x Running"],
    }
    assert outcome.extra["recent events"] == ["2026-01-01T00:00:00Z Pod/x BackOff: again"]
    assert outcome.extra["node conditions"]["cp-1"]["Ready"] == "Ready=True (KubeletReady)"


async def test_healthy_from_a_watch_is_read_afresh_before_it_counts(api: FakeKubernetes) -> None:
    api.put(NODE_PATH, node_object("cp-1", "127.0.0.1"))
    before = len([line for line in api.requests if "watch=1" not in line and NODE_PATH in line])
    outcome = await noticed(
        "nodes-registered", target(api, nodes=NODES), lambda: api.put(NODE_PATH, node_object("w-1", "127.0.0.2"))
    )
    lists = [line for line in api.requests if "watch=1" not in line and NODE_PATH in line]
    assert outcome.healthy
    assert len(lists) - before >= 2
