"""Machine configuration patches: what each node is told, and that nothing else decides it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from components import machine_config
from config import ClusterConfig
from tests.stackfiles import cluster

INSTALLER = "factory.talos.dev/nocloud-installer/abc:v1.13.9"


def documents(config: ClusterConfig, node: str) -> dict[str, dict[str, Any]]:
    """Patches by kind; the v1alpha1 ones merged under the empty name."""
    found: dict[str, Any] = {"": {"machine": {}, "cluster": {}}}
    for text in machine_config.patches(config, node, INSTALLER, []):
        patch = json.loads(text)
        if "kind" in patch:
            found[patch["kind"]] = patch
        else:
            for section in ("machine", "cluster"):
                found[""][section] |= patch.get(section, {})
    return found


@pytest.fixture(scope="module")
def infra() -> ClusterConfig:
    return cluster("infra")


def test_a_node_has_one_static_address_by_mac_and_no_dhcp(infra: ClusterConfig) -> None:
    told = documents(infra, "infra-w-1")
    assert told["LinkAliasConfig"]["selector"]["match"] == 'mac(link.permanent_addr) == "bc:24:11:19:0b:15"'
    assert told["LinkConfig"]["addresses"] == [{"address": "10.25.11.21/24"}]
    assert told["LinkConfig"]["routes"] == [{"gateway": "10.25.11.1"}]
    assert "dhcp" not in json.dumps(told).lower()


def test_the_hostname_is_given_and_not_derived(infra: ClusterConfig) -> None:
    assert documents(infra, "infra-w-1")["HostnameConfig"] == {
        "apiVersion": "v1alpha1",
        "kind": "HostnameConfig",
        "auto": "off",
        "hostname": "infra-w-1",
    }


def test_only_control_planes_hold_the_virtual_address(infra: ClusterConfig) -> None:
    assert documents(infra, "infra-cp-1")["Layer2VIPConfig"]["name"] == "10.25.11.10"
    assert "Layer2VIPConfig" not in documents(infra, "infra-w-1")


def test_talos_brings_no_network_and_no_proxy(infra: ClusterConfig) -> None:
    told = documents(infra, "infra-w-1")[""]
    assert told["cluster"]["network"] == {
        "cni": {"name": "none"},
        "podSubnets": ["10.244.0.0/16"],
        "serviceSubnets": ["10.245.0.0/16"],
    }
    assert told["cluster"]["proxy"] == {"disabled": True}
    assert told["machine"]["features"]["kubePrism"] == {"enabled": True, "port": 7445}


def test_the_storage_driver_finds_machine_region_and_zone(infra: ClusterConfig) -> None:
    machine = documents(infra, "infra-w-2")[""]["machine"]
    assert machine["kubelet"]["extraArgs"]["provider-id"] == "proxmox://home/1122"
    assert machine["nodeLabels"]["topology.kubernetes.io/zone"] == "boreas"
    assert machine["nodeLabels"]["topology.kubernetes.io/region"] == "home"


def test_kubelet_and_etcd_stay_on_the_node_network(infra: ClusterConfig) -> None:
    told = documents(infra, "infra-cp-1")[""]
    assert told["machine"]["kubelet"]["nodeIP"] == {"validSubnets": ["10.25.11.0/24"]}
    assert told["cluster"]["etcd"] == {"advertisedSubnets": ["10.25.11.0/24"]}


def test_no_patch_names_another_node(infra: ClusterConfig) -> None:
    addresses = {name: str(node.address) for name, node in infra.nodes.items()}
    for name in infra.nodes:
        text = " ".join(machine_config.patches(infra, name, INSTALLER, []))
        others = [other for other, address in addresses.items() if other != name and f'"{address}' in text]
        assert others == []


def test_two_renders_are_byte_equal(infra: ClusterConfig) -> None:
    first = machine_config.patches(infra, "infra-cp-1", INSTALLER, [])
    assert first == machine_config.patches(cluster("infra"), "infra-cp-1", INSTALLER, [])


def test_disks_are_chosen_by_size_and_never_by_path(infra: ClusterConfig) -> None:
    machine = documents(infra, "infra-w-1")[""]["machine"]
    assert machine["install"] == {"image": INSTALLER, "diskSelector": {"size": "== 100GiB"}}


def test_the_stacks_own_patches_come_last_and_from_the_general_to_the_particular() -> None:
    config = cluster(
        "infra",
        {
            "talos": {
                "patches": {
                    "all": [{"machine": {"sysctls": {"a": "1"}}}],
                    "worker": [{"machine": {"sysctls": {"b": "2"}}}],
                    "nodes": {"infra-w-1": [{"machine": {"sysctls": {"c": "3"}}}]},
                }
            }
        },
    )
    last = [json.loads(text) for text in machine_config.patches(config, "infra-w-1", INSTALLER, [])[-3:]]
    assert [next(iter(patch["machine"]["sysctls"])) for patch in last] == ["a", "b", "c"]
    assert "sysctls" in machine_config.patches(config, "infra-cp-1", INSTALLER, [])[-1]


def test_mirrors_mounts_taints_spegel_and_cloud_provider_reach_the_machine() -> None:
    config = cluster(
        "infra",
        {
            "talos": {
                "registry_mirrors": {"docker.io": ["https://mirror.home.arpa"]},
                "kubelet_mounts": [{"source": "/var/mnt/data", "destination": "/var/mnt/data"}],
            },
            "nodes": {"infra-w-1": {"taints": {"dedicated": "gpu:NoSchedule"}}},
            "charts": [
                _chart("spegel", None),
                _chart("proxmox-cloud-controller-manager", "G11b"),
            ],
        },
    )
    told = documents(config, "infra-w-1")
    assert told["RegistryMirrorConfig"]["endpoints"] == [{"url": "https://mirror.home.arpa"}]
    assert told[""]["machine"]["kubelet"]["extraMounts"][0]["source"] == "/var/mnt/data"
    assert told[""]["machine"]["nodeTaints"] == {"dedicated": "gpu:NoSchedule"}
    assert told[""]["machine"]["files"][0]["path"] == "/etc/cri/conf.d/20-customization.part"
    assert told[""]["cluster"]["externalCloudProvider"] == {"enabled": True}


def _chart(name: str, gate: str | None) -> dict[str, Any]:
    return {
        "name": name,
        "chart": name,
        "repository": "https://charts.home.arpa",
        "version": "1.0.0",
        "namespace": "kube-system",
        "gate": gate,
    }


def test_inline_manifests_go_to_control_planes_only(infra: ClusterConfig) -> None:
    manifests = [{"name": "cilium", "contents": "---"}]
    assert "inlineManifests" in " ".join(machine_config.patches(infra, "infra-cp-1", INSTALLER, manifests))
    assert "inlineManifests" not in " ".join(machine_config.patches(infra, "infra-w-1", INSTALLER, manifests))
