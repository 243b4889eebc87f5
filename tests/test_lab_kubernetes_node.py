"""What an emulated kubelet registers, from the machine config of its node."""

from __future__ import annotations

from typing import Any

import pytest

from lab.kubernetes.machine import Machine, csi_driver, topology
from lab.kubernetes.node_object import Node, registration, status, talos_labels, talos_taints
from lab.kubernetes.static_pods import static_pods
from tests.lab_kubernetes import machine_config, node

ROLE = "node-role.kubernetes.io/control-plane"


def worker(**machine: Any) -> Node:
    config = machine_config("worker")
    config["machine"] |= machine
    return node("w-1", "10.0.0.21", "worker", config=config)


def test_a_control_plane_has_its_role_and_its_taint() -> None:
    assert talos_labels(node())[ROLE] == ""
    assert registration(node())["spec"]["taints"] == [{"key": ROLE, "effect": "NoSchedule"}]


def test_scheduling_on_control_planes_leaves_the_taint_off() -> None:
    config = machine_config(allowSchedulingOnControlPlanes=True)
    assert registration(node(config=config))["spec"]["taints"] == []
    assert talos_taints(node(config=config)) == []


def test_the_kubelets_arguments_reach_the_node() -> None:
    extra = {
        "provider-id": "proxmox://home/121",
        "register-with-taints": ["a=b:NoSchedule", "c:NoExecute"],
        "node-labels": "x=1,y=2",
    }
    made = registration(worker(kubelet={"extraArgs": extra}))
    assert made["spec"]["providerID"] == "proxmox://home/121"
    taints = [{"key": "a", "value": "b", "effect": "NoSchedule"}, {"key": "c", "effect": "NoExecute"}]
    assert made["spec"]["taints"] == taints
    assert made["metadata"]["labels"]["y"] == "2"


def test_the_kubelets_configuration_reaches_the_node() -> None:
    taint = {"key": "storage", "value": "yes", "effect": "NoSchedule"}
    extra = {"providerID": "proxmox://home/9", "registerWithTaints": [taint]}
    made = registration(worker(kubelet={"extraConfig": extra}))
    assert made["spec"] == {"taints": [taint], "providerID": "proxmox://home/9"}


def test_an_external_cloud_provider_taints_the_node() -> None:
    config = machine_config("worker", externalCloudProvider={"enabled": True})
    made = registration(node("w-1", "10.0.0.21", "worker", config=config))
    assert made["spec"]["taints"][0]["key"] == "node.cloudprovider.kubernetes.io/uninitialized"


def test_node_taints_are_added_afterwards() -> None:
    made = worker(nodeTaints={"a": "b:NoSchedule", "c": "NoExecute"})
    assert talos_taints(made) == [
        {"key": "a", "effect": "NoSchedule", "value": "b"},
        {"key": "c", "effect": "NoExecute"},
    ]
    assert registration(made)["spec"]["taints"] == []


def test_versions_come_from_the_images() -> None:
    info = status(node(), network=False, now="t")["nodeInfo"]
    assert info["kubeletVersion"] == "v1.36.4"
    assert info["osImage"] == "Talos (v1.13.9)"


@pytest.mark.parametrize(("network", "ready"), [(False, "False"), (True, "True")])
def test_ready_follows_the_network(network: bool, ready: str) -> None:
    conditions = status(node(), network=network, now="t")["conditions"]
    found = next(item for item in conditions if item["type"] == "Ready")
    assert found["status"] == ready
    assert ("NetworkPluginNotReady" in found["message"]) is not network


def test_only_control_planes_have_static_pods() -> None:
    assert [pod["metadata"]["name"] for pod in static_pods(node(), "u")] == [
        "kube-apiserver-cp-1",
        "kube-controller-manager-cp-1",
        "kube-scheduler-cp-1",
    ]
    assert static_pods(worker(), "u") == []


def test_kubeprism_is_there_only_where_the_config_has_it() -> None:
    assert node().kubeprism_port == 7445
    assert worker(features={}).kubeprism_port is None


def test_pods_get_different_addresses_and_keep_theirs() -> None:
    machine = Machine(node())
    first = machine.address_for("a", ["10.244.1.0/24"], None)
    assert first == "10.244.1.2"
    assert machine.address_for("b", ["10.244.1.0/24"], None) == "10.244.1.3"
    assert machine.address_for("a", ["10.244.1.0/24"], None) == first
    machine.release("a")
    assert machine.address_for("c", ["10.244.1.0/24"], None) == first
    assert machine.address_for("d", ["10.244.1.0/24"], "10.244.1.77") == "10.244.1.77"
    assert Machine(node()).address_for("a", [], None) is None


def test_a_csi_driver_needs_region_and_zone() -> None:
    path = "--kubelet-registration-path=/var/lib/kubelet/plugins/csi.proxmox.sinextra.dev/csi.sock"
    pod = {"spec": {"containers": [{"name": "plugin"}, {"name": "registrar", "args": ["-v=5", path]}]}}
    driver = csi_driver(pod)
    assert driver == "csi.proxmox.sinextra.dev"
    labels = {"topology.kubernetes.io/region": "home"}
    with pytest.raises(LookupError, match="zone"):
        topology(driver, labels)
    labels["topology.kubernetes.io/zone"] = "atlas"
    assert topology(driver, labels) == list(labels)
