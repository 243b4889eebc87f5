"""The order of the bootstrap, asked of the graph the program really registers."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pulumi
import pytest

from tests.engine import STACKS, Run, run
from tests.stages import expected_edges, recorded_edges

COMPONENTS_IN_ORDER = [
    "ProxmoxNodes",
    "TalosCluster",
    "Prerequisites",
    "CiliumRelease",
    "SealedSecretsKey",
    "FluxBootstrap",
]
IDENTITY = [
    ("talos:machine/secrets:Secrets", "{}-secrets"),
    ("tls:index/privateKey:PrivateKey", "{}-sealing-key"),
    ("tls:index/selfSignedCert:SelfSignedCert", "{}-sealing-certificate"),
]


@pytest.fixture(params=STACKS, scope="module")
def stack(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def graph(stack: str) -> Run:
    with pytest.MonkeyPatch.context() as patch:
        return run(stack, patch)


def component(graph: Run, stack: str, name: str) -> str:
    return graph.one(f"groundwork:index:{name}", stack).urn


def test_every_stage_waits_for_exactly_the_stages_it_builds_on(graph: Run, stack: str) -> None:
    assert recorded_edges(graph) == expected_edges(graph, stack)


def test_every_component_waits_for_all_of_the_one_before(graph: Run, stack: str) -> None:
    for earlier, later in pairwise(COMPONENTS_IN_ORDER):
        customs = {urn for urn in graph.inside(component(graph, stack, earlier)) if graph.all[urn].custom}
        ends = {graph.one("dynamic/groundwork:Gate", f"{stack}-{name}").urn for name in GATES_AT_THE_END[later]}
        for end in ends:
            assert customs <= graph.behind(end), (earlier, later)


GATES_AT_THE_END = {
    "TalosCluster": ["vip", "nodes-registered"],
    "Prerequisites": ["prerequisites"],
    "CiliumRelease": ["lb-pools"],
    "SealedSecretsKey": ["sealed-files"],
    "FluxBootstrap": ["storage"],
}


def test_the_last_gate_waits_for_everything(graph: Run, stack: str) -> None:
    final = graph.one("dynamic/groundwork:Gate", f"{stack}-final").urn
    customs = {each.urn for each in graph.all.values() if each.custom and "pulumi:providers" not in each.type}
    providers = {each.urn for each in graph.all.values() if "pulumi:providers" in each.type}
    assert customs - graph.behind(final) - providers == {final}


def test_machines_do_not_wait_for_each_other(graph: Run) -> None:
    machines = {each.urn for each in graph.of_type("vmLegacy:VmLegacy")}
    assert len(machines) == 6
    for machine in machines:
        assert not graph.behind(machine) & machines


@pytest.mark.parametrize(("type_", "name"), IDENTITY, ids=[type_ for type_, _ in IDENTITY])
def test_identity_hangs_on_nothing_of_the_cluster(graph: Run, stack: str, type_: str, name: str) -> None:
    identity = graph.one(type_, name.format(stack))
    cluster = [
        each for each in graph.behind(identity.urn) if "vmLegacy" in each or "Gate" in each or "kubernetes" in each
    ]
    assert identity.protect
    assert cluster == []


def test_every_child_is_parented_to_its_component(graph: Run) -> None:
    for each in graph.all.values():
        if each.type.startswith(("pulumi:pulumi:Stack", "pulumi:providers")):
            continue
        parent = graph.all.get(each.parent)
        if parent is None or parent.type == "pulumi:pulumi:Stack":
            assert each.type.startswith("groundwork:index"), each.urn
        else:
            assert not parent.custom, each.urn


def test_every_component_owns_a_custom_resource(graph: Run) -> None:
    for each in graph.all.values():
        if each.type.startswith("groundwork:index"):
            assert any(graph.all[urn].custom for urn in graph.inside(each.urn)), each.urn


def test_no_resource_uses_a_default_provider(graph: Run) -> None:
    for each in graph.all.values():
        if each.type.split(":")[0] in ("kubernetes", "proxmoxve", "talos", "tls", "command"):
            assert each.provider or each.remote, each.urn
            assert "default" not in each.provider, each.urn


def test_what_lives_in_the_cluster_is_forgotten_not_deleted(graph: Run) -> None:
    inside = [each for each in graph.all.values() if each.type.startswith("kubernetes:")]
    assert inside
    assert [each.urn for each in inside if not each.retain_on_delete] == []


def test_the_kubernetes_provider_itself_waits_for_the_api_gate(graph: Run, stack: str) -> None:
    provider = graph.one("pulumi:providers:kubernetes", "kubernetes")
    assert graph.one("dynamic/groundwork:Gate", f"{stack}-kube-api").urn in provider.dependencies
    assert provider.inputs["clusterIdentifier"] == stack


def test_machines_keep_what_is_not_ours_and_reboot_only_by_hand(graph: Run) -> None:
    for machine in graph.of_type("vmLegacy:VmLegacy"):
        assert machine.protect
        assert "disks" in machine.ignore_changes
        assert machine.inputs["rebootAfterUpdate"] is False
        assert machine.inputs["deleteUnreferencedDisksOnDestroy"] is False
        assert machine.inputs["stopOnDestroy"] is True
        assert machine.inputs["tags"] == sorted(machine.inputs["tags"])


def test_removing_a_node_changes_only_that_node_and_the_gates(stack: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run(stack, monkeypatch)
    for name in (f"{stack}-w-2", f"{stack}-w-3"):
        rest = run(stack, monkeypatch, lambda cluster, name=name: cluster["nodes"].pop(name))
        gone = set(whole.all) - set(rest.all)
        assert {whole.all[urn].name for urn in gone} == {name, f"{name}-configuration"}
        changed = {urn for urn in rest.all if rest.all[urn].inputs != whole.all[urn].inputs}
        # The record of roll-outs lists the nodes; it touches none of them.
        assert {rest.all[urn].type for urn in changed} == {
            "pulumi-python:dynamic/groundwork:Gate",
            "pulumi-python:dynamic/groundwork:Rollout",
        }


class Cut:
    """Drops the n-th explicit dependency list that the program hands to Pulumi."""

    def __init__(self, victim: int | None) -> None:
        self.victim, self.seen = victim, 0

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        original = pulumi.ResourceOptions.__init__
        cut = self

        def replacement(self: Any, *args: Any, **kwargs: Any) -> None:
            if kwargs.get("depends_on"):
                if cut.seen == cut.victim:
                    kwargs["depends_on"] = None
                cut.seen += 1
            original(self, *args, **kwargs)

        monkeypatch.setattr(pulumi.ResourceOptions, "__init__", replacement)


def test_no_dependency_can_be_removed_unnoticed() -> None:
    with pytest.MonkeyPatch.context() as patch:
        count = Cut(None)
        count.install(patch)
        whole = run("infra", patch)
        expected = expected_edges(whole, "infra")
    assert count.seen > 30
    for victim in range(count.seen):
        with pytest.MonkeyPatch.context() as patch:
            Cut(victim).install(patch)
            assert recorded_edges(run("infra", patch)) != expected, f"dependency list {victim} is not held by the table"
