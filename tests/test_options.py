"""The program with its options turned on."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.engine import run

CHARTS = [
    {
        "name": "coredns",
        "chart": "coredns",
        "repository": "https://charts.home.arpa",
        "version": "1.47.0",
        "namespace": "kube-system",
        "gate": "G12a",
    },
    {
        "name": "cert-manager",
        "chart": "cert-manager",
        "repository": "https://charts.home.arpa",
        "version": "1.21.1",
        "namespace": "cert-manager",
        "needs": ["coredns"],
    },
]


def test_charts_before_flux_wait_for_what_they_need(monkeypatch: pytest.MonkeyPatch) -> None:
    def change(cluster: dict[str, Any]) -> None:
        cluster["charts"] = list(reversed(CHARTS))
        cluster["talos"]["coredns"] = False

    graph = run("infra", monkeypatch, change)
    gate = graph.one("dynamic/groundwork:Gate", "infra-dns").urn
    later = graph.one("helm.sh/v3:Release", "cert-manager").urn
    assert gate in graph.behind(later)
    assert graph.one("helm.sh/v3:Release", "coredns").urn in graph.behind(gate)
    assert later in graph.behind(graph.one("core/v1:Secret", "infra-sealing-key").urn)
    assert graph.one("core/v1:Namespace", "cert-manager").inputs["metadata"]["labels"]


def test_own_storage_credentials_hang_on_nothing_and_are_sealed(monkeypatch: pytest.MonkeyPatch) -> None:
    def change(cluster: dict[str, Any]) -> None:
        cluster["proxmox"]["create_csi_credentials"] = True

    graph = run("infra", monkeypatch, change, None, {"proxmoxAdminToken": "root@pam!setup=1-2-3"})
    token = graph.one("user/token:Token", "infra-csi")
    assert token.protect
    assert not [each for each in graph.behind(token.urn) if "vmLegacy" in each]
    sealed = graph.one("groundwork:SealedFile", "infra-proxmox-csi-plugin-sealed")
    assert "33333333-aaaa" in json.dumps(sealed.inputs)


def test_existing_sealing_keys_are_used_and_none_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.computed import key_pair

    private, certificate = key_pair()
    keys = {"sealingKey": private, "sealingCertificate": certificate}
    graph = run("infra", monkeypatch, None, None, keys)
    assert graph.of_type("privateKey:PrivateKey") == []
    assert graph.one("core/v1:Secret", "infra-sealing-key").inputs


def test_bgp_needs_no_announcement_policy_and_tells_flux_its_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    def change(cluster: dict[str, Any]) -> None:
        cluster["cilium"]["announce"] = "bgp"
        cluster["cilium"]["bgp"] = {"local_asn": 64512, "peers": [{"address": "10.25.11.1", "asn": 64513}]}

    graph = run("infra", monkeypatch, change)
    assert graph.of_type("CiliumL2AnnouncementPolicy") == []
    settings = graph.one("core/v1:ConfigMap", "cluster-settings").inputs["data"]
    assert (settings["BGP"], settings["BGP_PEER_ASN"]) == ("enabled", "64513")


def test_without_storage_driver_gateway_or_pools_their_gates_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    def change(cluster: dict[str, Any]) -> None:
        cluster["storage"] = {"role": "none"}
        cluster["cilium"]["gateway_api"] = False
        cluster["lb_pools"], cluster["lb_addresses"] = {}, {}
        cluster["sealing"]["publish"] = "none"

    graph = run("infra", monkeypatch, change)
    gates = {each.name for each in graph.of_type("dynamic/groundwork:Gate")}
    assert "infra-storage" not in gates
    assert "infra-crds" not in gates
    assert graph.of_type("local:Command") == []
    assert graph.of_type("CiliumLoadBalancerIPPool") == []


def test_namespaces_that_ask_for_it_get_the_pull_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    def change(cluster: dict[str, Any]) -> None:
        cluster["namespaces"] = {"team": {"pod_security": "baseline", "pull_secret": True}}

    graph = run("infra", monkeypatch, change, None, {"pullSecret": json.dumps({"auths": {"ghcr.io": {}}})})
    secret = graph.one("core/v1:Secret", "team-registry-pull")
    assert secret.inputs["type"] == "kubernetes.io/dockerconfigjson"


def test_data_disks_vlan_and_mtu_reach_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    def change(cluster: dict[str, Any]) -> None:
        cluster["proxmox"] |= {"mtu": 9000, "vlan": None}
        cluster["nodes"]["infra-w-1"]["disks"] = [{"size": 200, "storage": "tank"}, {"size": 300}]

    machine = run("infra", monkeypatch, change).one("vmLegacy:VmLegacy", "infra-w-1")
    extra = [(disk["interface"], disk["datastoreId"], disk["size"]) for disk in machine.inputs["disks"][1:]]
    assert extra == [("scsi1", "tank", 200), ("scsi2", "local-lvm", 300)]
    assert machine.inputs["networkDevices"][0]["mtu"] == 9000
    assert "vlanId" not in machine.inputs["networkDevices"][0]


def test_only_nodes_named_in_the_roll_out_take_a_new_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    def change(cluster: dict[str, Any]) -> None:
        cluster["rollout"] = {"nodes": ["infra-w-1"], "cilium": True}

    graph = run("infra", monkeypatch, change)
    frozen = {each.name: bool(each.ignore_changes) for each in graph.of_type("configurationApply:ConfigurationApply")}
    assert [name for name, is_frozen in frozen.items() if not is_frozen] == ["infra-w-1-configuration"]
    assert graph.one("helm.sh/v3:Release", "cilium").ignore_changes == ()


def test_a_crd_list_that_brings_anything_else_is_refused() -> None:
    import pulumi

    from components.cilium_release import only_definitions

    def made(kind: str) -> pulumi.ResourceTransformArgs:
        return pulumi.ResourceTransformArgs(
            custom=True, type_="kubernetes:x:Y", name="thing", props={"kind": kind}, opts=pulumi.ResourceOptions()
        )

    assert only_definitions(made("CustomResourceDefinition")) is None
    with pytest.raises(pulumi.RunError, match="a Deployment among the CRDs"):
        only_definitions(made("Deployment"))
