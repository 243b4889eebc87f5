"""Rule by rule: a Cilium agent runs on an emulated Talos node only if it would on a real one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from lab.kubernetes.cilium_agent import cilium_endpoint, cilium_node, is_agent, refusal, waits_for_pod_cidr
from tests.lab_kubernetes import CILIUM_CONFIG, POD_SUBNET, agent_pod, node

CIDRS = ["10.244.3.0/24"]


def refuse(pod: dict[str, Any], config: dict[str, str] = CILIUM_CONFIG, cidrs: Sequence[str] = CIDRS) -> str | None:
    return refusal(pod, config, pod_cidrs=cidrs, pod_subnets=[POD_SUBNET])


def test_an_agent_with_the_values_for_talos_runs() -> None:
    assert refuse(agent_pod(), CILIUM_CONFIG, CIDRS) is None


@pytest.mark.parametrize("container", ["cilium-agent", "clean-cilium-state"])
def test_sys_module_is_refused_in_any_container(container: str) -> None:
    capabilities = {"capabilities": {"add": ["NET_ADMIN", "SYS_MODULE"]}}
    pod = agent_pod(initContainers=[{"name": "clean-cilium-state", "securityContext": capabilities}])
    if container == "cilium-agent":
        pod = agent_pod()
        pod["spec"]["containers"][0]["securityContext"] = capabilities
    reason = refuse(pod, CILIUM_CONFIG, CIDRS)
    assert reason is not None
    assert container in reason
    assert "SYS_MODULE" in reason


def test_a_privileged_container_is_not_asked_for_single_capabilities() -> None:
    pod = agent_pod()
    pod["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    assert refuse(pod, CILIUM_CONFIG, CIDRS) is None


def test_mounting_the_cgroup_filesystem_is_refused() -> None:
    pod = agent_pod(initContainers=[{"name": "mount-cgroup"}])
    assert "cgroup.autoMount" in (refuse(pod, CILIUM_CONFIG, CIDRS) or "")


def test_a_pod_range_outside_the_machine_config_is_refused() -> None:
    reason = refuse(agent_pod(), CILIUM_CONFIG, ["172.31.5.0/24"])
    assert "outside the machine config's podSubnets" in (reason or "")


def test_a_pool_of_its_own_must_lie_in_the_machine_configs_subnets() -> None:
    config = {**CILIUM_CONFIG, "ipam": "cluster-pool", "cluster-pool-ipv4-cidr": "10.0.0.0/8"}
    assert "10.0.0.0/8" in (refuse(agent_pod(), config, CIDRS) or "")
    config["cluster-pool-ipv4-cidr"] = "10.244.0.0/16"
    assert refuse(agent_pod(), config, CIDRS) is None


@pytest.mark.parametrize("native", ["", "10.243.0.0/16"])
def test_native_routing_must_cover_the_pods(native: str) -> None:
    config = {**CILIUM_CONFIG, "ipv4-native-routing-cidr": native}
    assert "native-routing-cidr" in (refuse(agent_pod(), config, CIDRS) or "")


def test_a_tunnel_needs_no_native_range() -> None:
    config = {"ipam": "kubernetes", "routing-mode": "tunnel"}
    assert refuse(agent_pod(), config, CIDRS) is None


def test_an_agent_waits_for_its_nodes_range() -> None:
    assert waits_for_pod_cidr(CILIUM_CONFIG, [])
    assert not waits_for_pod_cidr({"ipam": "cluster-pool"}, [])


def test_only_the_agent_counts_as_one() -> None:
    assert is_agent(agent_pod())
    assert not is_agent(agent_pod(containers=[{"name": "cilium-envoy"}]))


def test_the_agent_says_which_addresses_its_node_has() -> None:
    owner = {"metadata": {"uid": "1234", "labels": {"zone": "a"}}}
    made = cilium_node(node(), owner, CIDRS)
    assert made["spec"]["ipam"]["podCIDRs"] == CIDRS
    assert made["metadata"]["ownerReferences"][0]["uid"] == "1234"


def test_the_agent_says_which_pods_are_on_its_network() -> None:
    made = cilium_endpoint(agent_pod(), "10.244.3.7", "10.0.0.1")
    assert made["status"]["networking"] == {"addressing": [{"ipv4": "10.244.3.7"}], "node": "10.0.0.1"}
    assert made["metadata"]["ownerReferences"][0]["kind"] == "Pod"
