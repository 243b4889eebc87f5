"""The values Cilium is born with."""

from __future__ import annotations

from components.cilium_release import crd_urls, expected_crds, pool_spec
from components.cilium_values import bootstrap_values, merged, values
from tests.stackfiles import cluster


def test_values_suit_talos() -> None:
    told = values(cluster("infra"))
    assert (told["k8sServiceHost"], told["k8sServicePort"]) == ("localhost", 7445)
    assert told["cgroup"] == {"autoMount": {"enabled": False}, "hostRoot": "/sys/fs/cgroup"}
    assert "SYS_MODULE" not in str(told)
    assert told["ipam"] == {"mode": "kubernetes"}


def test_nothing_at_birth_waits_for_something_that_comes_later() -> None:
    told = values(cluster("infra"))
    assert told["hubble"]["relay"] == {"enabled": False}
    assert told["clustermesh"] == {"useAPIServer": False}
    assert "lbipam" not in str(told)
    assert told["operator"] == {"replicas": 2}


def test_the_stacks_own_values_win_key_by_key() -> None:
    told = values(cluster("infra", {"cilium": {"values": {"operator": {"replicas": 3}, "debug": {"enabled": True}}}}))
    assert told["operator"] == {"replicas": 3}
    assert told["debug"] == {"enabled": True}
    assert told["cluster"] == {"name": "infra", "id": 1}


def test_merging_replaces_lists_and_keeps_siblings() -> None:
    assert merged({"a": {"b": 1, "c": [1]}}, {"a": {"c": [2]}}) == {"a": {"b": 1, "c": [2]}}


def test_encryption_is_said_only_when_wanted() -> None:
    assert "encryption" not in bootstrap_values(cluster("infra"))
    wanted = bootstrap_values(cluster("infra", {"cilium": {"encryption": "wireguard"}}))
    assert wanted["encryption"] == {"enabled": True, "type": "wireguard"}


def test_gateway_crds_come_one_file_each_in_the_paired_version() -> None:
    urls = crd_urls(cluster("infra"))
    assert all("/v1.6.1/config/crd/standard/gateway.networking.k8s.io_" in url for url in urls)
    assert expected_crds(cluster("infra"))["tlsroutes.gateway.networking.k8s.io"] == ["v1"]
    assert crd_urls(cluster("infra", {"cilium": {"gateway_api": False}})) == []


def test_a_pool_selects_services_only_when_it_says_so() -> None:
    pools = cluster("infra").lb_pools
    assert pool_spec(pools["gateway"]) == {"blocks": [{"start": "10.25.11.120", "stop": "10.25.11.129"}]}
    assert pool_spec(pools["mesh"])["serviceSelector"] == {"matchLabels": {"groundwork.dev/pool": "mesh"}}
