"""What a good stack file becomes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import pytest
from pydantic import ValidationError

import config
from tests import config_stacks as stacks
from tests.bad_configs import KEY, MESHED

CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, value in (stacks.ENVIRONMENT | {"CILIUM_CA": CERTIFICATE + KEY}).items():
        monkeypatch.setenv(name, value)
    loop = asyncio.new_event_loop()  # outputs want one, as they have under Pulumi
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()


@pytest.mark.parametrize("stack", stacks.STACKS)
def test_committed_stacks_are_good(stack: str) -> None:
    stacks.hand_over(stack, stacks.committed(stack))
    settings = config.load()
    assert settings.cluster.name == stack
    assert settings.warnings == []
    assert set(settings.peers) == set(stacks.STACKS) - {stack}


def test_pins_are_the_defaults(tmp_path: Path) -> None:
    settings = stacks.load(tmp_path, "infra", {"infra": {"cluster.versions": stacks.DELETE}})
    assert settings.cluster.versions == stacks.load(tmp_path, "infra").cluster.versions


def test_types(tmp_path: Path) -> None:
    cluster = stacks.load(tmp_path, "infra").cluster
    assert cluster.nodes["infra-w-1"].address == IPv4Address("10.25.11.21")
    assert cluster.network.dns_service == IPv4Address("10.245.0.10")
    assert list(cluster.control_planes) == ["infra-cp-1", "infra-cp-2", "infra-cp-3"]
    assert list(cluster.workers) == ["infra-w-1", "infra-w-2", "infra-w-3"]
    assert cluster.lb_pools["mesh"].span == config.AddressRange(
        IPv4Address("10.25.11.100"), IPv4Address("10.25.11.101")
    )
    assert not cluster.external_cloud_provider


def test_frozen(tmp_path: Path) -> None:
    cluster = stacks.load(tmp_path, "infra").cluster
    with pytest.raises(ValidationError, match="frozen"):
        cluster.name = "other"  # type: ignore[misc]


def test_paths_and_zones_follow_from_names(tmp_path: Path) -> None:
    patch = {"cluster.sealing": stacks.DELETE, "cluster.flux.path": stacks.DELETE, "cluster.proxmox.hosts.atlas": None}
    cluster = stacks.load(tmp_path, "infra", {"infra": patch}).cluster
    assert cluster.flux.path == "gitops/clusters/infra"
    assert cluster.sealing.directory == "gitops/clusters/infra/sealed"
    assert cluster.sealing.publish == "none"
    assert cluster.proxmox.hosts["atlas"].zone == "atlas"


def test_native_routing_is_the_pod_network_without_a_mesh(tmp_path: Path) -> None:
    assert stacks.load(tmp_path, "infra").cluster.native_routing_cidr == IPv4Network("10.244.0.0/16")


@pytest.mark.parametrize("stack", stacks.STACKS)
def test_native_routing_covers_the_mesh(tmp_path: Path, stack: str) -> None:
    settings = stacks.load(tmp_path, stack, dict.fromkeys(stacks.STACKS, MESHED))
    assert settings.cluster.native_routing_cidr == IPv4Network("10.244.0.0/14")
    assert settings.warnings == []


def test_native_routing_that_is_given_stays(tmp_path: Path) -> None:
    settings = stacks.load(tmp_path, "infra", {"infra": {"cluster.cilium.native_routing_cidr": "10.240.0.0/12"}})
    assert settings.cluster.native_routing_cidr == IPv4Network("10.240.0.0/12")


def test_deadlines_have_defaults(tmp_path: Path) -> None:
    cluster = stacks.load(tmp_path, "infra", {"infra": {"cluster.deadlines": {"G4": 900}}}).cluster
    assert cluster.deadline("G4") == 900
    assert cluster.deadline("G12b") == config.DEADLINES["G12b"] == 30


CHARTS: list[dict[str, object]] = [
    {"name": "coredns", "chart": "oci://ghcr.io/coredns/charts/coredns", "version": "1.47.0", "gate": "G12a"},
    {
        "name": "cert-manager",
        "chart": "cert-manager",
        "repository": "https://charts.jetstack.io",
        "version": "v1.21.1",
        "needs": ["coredns"],
    },
    {"name": "ccm", "chart": "oci://ghcr.io/sergelogvinov/charts/ccm", "version": "0.2.28", "gate": "G11b"},
]

ONE_NODE: dict[str, object] = {
    f"cluster.nodes.infra-{name}": stacks.DELETE for name in ("cp-2", "cp-3", "w-1", "w-2", "w-3")
}

GOOD: dict[str, stacks.Patch] = {
    "one-node": ONE_NODE | {"cluster.talos.allow_scheduling_on_control_planes": True},
    "charts-before-flux": {
        "cluster.charts": [chart | {"namespace": "kube-system"} for chart in CHARTS],
        "cluster.talos.coredns": False,
    },
    "bgp-with-pools-elsewhere": {
        "cluster.cilium.announce": "bgp",
        "cluster.cilium.bgp": {"local_asn": 64512, "peers": [{"address": "10.25.11.1", "asn": 64513}]},
        "cluster.lb_pools.far": {"cidr": "10.99.0.0/28"},
    },
    "bpf-masquerade-with-legacy-routing": {"cluster.cilium.bpf_masquerade": True},
    "bpf-masquerade-without-dns-forwarding": {
        "cluster.cilium.bpf_masquerade": True,
        "cluster.cilium.host_legacy_routing": False,
        "cluster.talos.host_dns_forward": False,
    },
    "older-pair": {"cluster.versions.cilium": "1.19.6", "cluster.versions.gateway_api": "1.4.1"},
    "unpaired-without-gateway-api": {"cluster.versions.gateway_api": "1.4.1", "cluster.cilium.gateway_api": False},
    "nothing-published": {"cluster.sealing.publish": "none", "gitToken": stacks.DELETE},
    "data-disks": {"cluster.nodes.infra-w-1.disks": [{"size": 200}, {"size": 300, "storage": "ceph"}]},
    "private-authority": {"cluster.proxmox.ca": CERTIFICATE},
    "names-of-secrets": {
        "cluster.cilium.values": {
            "imagePullSecrets": [{"name": "x"}],
            "extraConfig": {"existingSecret": "x", "pullSecret": "x", "existingToken": "x"},
        }
    },
    "no-dhcp-server": {"cluster.network.dhcp_range": stacks.DELETE},
    "pinned-crds": {"cluster.crds": [{"url": "https://h.example/v1.2.3/crds.yaml"}]},
    "patches": {
        "cluster.talos.patches": {
            "all": [{"machine": {"sysctls": {"vm.max_map_count": "262144"}}}],
            "nodes": {"infra-w-1": [{"kind": "UserVolumeConfig"}]},
        }
    },
}


@pytest.mark.parametrize("name", GOOD)
def test_good(name: str, tmp_path: Path) -> None:
    assert stacks.load(tmp_path, "infra", {"infra": GOOD[name]}).warnings == []


def test_a_consumer_may_name_its_provider(tmp_path: Path) -> None:
    settings = stacks.load(tmp_path, "apps", {"apps": {"cluster.storage.provider_stack": "infra"}})
    assert settings.peers["infra"].storage.role == "provider"


def test_equal_vm_ids_on_different_hypervisors_are_fine(tmp_path: Path) -> None:
    patch = {"cluster.proxmox.endpoint": "https://other.home.arpa:8006", "cluster.nodes.infra-w-1.vmid": 1221}
    assert stacks.load(tmp_path, "infra", {"infra": patch}).warnings == []


def test_a_cloud_controller_makes_nodes_wait_for_it(tmp_path: Path) -> None:
    cluster = stacks.load(tmp_path, "infra", {"infra": GOOD["charts-before-flux"]}).cluster
    assert cluster.external_cloud_provider


WARNINGS: dict[str, tuple[stacks.Patch, str]] = {
    "shared-host": ({"cluster.nodes.infra-cp-2.host": "atlas"}, "infra-cp-1, infra-cp-2 share the host atlas"),
    "no-guest-agent": ({"cluster.talos.extensions": []}, "siderolabs/qemu-guest-agent is missing"),
    "sealed-elsewhere": ({"cluster.sealing.directory": "secrets"}, "secrets is outside flux.path"),
    "mesh-alone": (MESHED, "no other stack has a mesh to connect to"),
    "wide-native-routing": ({"cluster.cilium.native_routing_cidr": "10.0.0.0/8"}, "without masquerading"),
}


@pytest.mark.parametrize("name", WARNINGS)
def test_warned(name: str, tmp_path: Path) -> None:
    patch, words = WARNINGS[name]
    [warning] = stacks.load(tmp_path, "infra", {"infra": patch}).warnings
    assert words in warning


def test_three_on_two_hosts_have_to_share(tmp_path: Path) -> None:
    nodes = {
        name: node for name, node in stacks.committed("infra")["cluster"]["nodes"].items() if node["host"] != "ceres"
    }
    nodes["infra-cp-3"] = stacks.committed("infra")["cluster"]["nodes"]["infra-cp-3"] | {"host": "boreas"}
    patch = {"cluster.nodes": nodes, "cluster.proxmox.hosts": {"atlas": {}, "boreas": {}}}
    assert stacks.load(tmp_path, "infra", {"infra": patch}).warnings == []


def test_digest_is_of_the_desired_state(tmp_path: Path) -> None:
    digest = stacks.load(tmp_path, "infra").digest
    assert digest == stacks.load(tmp_path, "infra").digest
    assert digest == stacks.load(tmp_path, "infra", {"infra": {"cluster.proxmox.insecure": False}}).digest
    assert digest != stacks.load(tmp_path, "infra", {"infra": {"cluster.nodes.infra-w-1.cores": 9}}).digest


def test_digest_does_not_depend_on_the_order_of_keys(tmp_path: Path) -> None:
    cluster = stacks.committed("infra")["cluster"]
    turned = dict(reversed(cluster.items()))
    assert (
        stacks.load(tmp_path, "infra", {"infra": {"cluster": turned}}).digest == stacks.load(tmp_path, "infra").digest
    )


def test_a_stack_file_without_a_cluster_is_not_a_peer(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.shared.yaml").write_text("encryptionsalt: v1:abc\n")
    (tmp_path / "Pulumi.empty.yaml").write_text("")
    assert set(stacks.load(tmp_path, "infra").peers) == {"apps"}
