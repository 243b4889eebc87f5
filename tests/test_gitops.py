"""What must hold in the tree that Flux reads, from its plain YAML and the committed stack files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.prerequisites import cluster_settings, namespaces
from config import ClusterConfig

ROOT = Path(__file__).parent.parent
GITOPS = ROOT / "gitops"
STACKS = ("infra", "apps")
VARIABLE = re.compile(r"\$\{(\w+)(?::=([^}]*))?\}")
ORDER = ["settings", "repositories", "sealed-secrets", "sealed", "storage", "infrastructure", "apps"]
ROOT_SECONDS = 600
"""The deadline of the gates that watch Flux."""

Document = dict[str, Any]


@dataclass(frozen=True)
class Step:
    """A Flux Kustomization, with what it applies."""

    document: Document
    objects: tuple[Document, ...]
    parent: str | None

    @property
    def name(self) -> str:
        return str(self.document["metadata"]["name"])

    @property
    def spec(self) -> Document:
        spec: Document = self.document["spec"]
        return spec

    @property
    def needs(self) -> set[str]:
        return {dependency["name"] for dependency in self.spec.get("dependsOn", [])}


def cluster(stack: str) -> ClusterConfig:
    document = yaml.safe_load((ROOT / f"Pulumi.{stack}.yaml").read_text(encoding="utf-8"))
    return ClusterConfig.model_validate(document["config"]["groundwork:cluster"])


def documents(file: Path) -> list[Document]:
    return [found for found in yaml.safe_load_all(file.read_text(encoding="utf-8")) if found]


def reached(directory: Path) -> Iterator[Path]:
    """The manifests of a kustomize directory."""
    for resource in documents(directory / "kustomization.yaml")[0]["resources"]:
        path = (directory / resource).resolve()
        if path.is_dir():
            yield from reached(path)
        else:
            yield path


def applied(directory: Path) -> tuple[Document, ...]:
    return tuple(found for file in reached(directory) for found in documents(file))


def paths(path: str) -> list[str]:
    """Both sides of a switch, for a path that ends in one."""
    return [VARIABLE.sub(side, path) for side in ("enabled", "disabled")] if "${" in path else [path]


def collect(objects: tuple[Document, ...], parent: str | None) -> Iterator[Step]:
    for found in objects:
        if found["apiVersion"].startswith("kustomize.toolkit.fluxcd.io/"):
            name = found["metadata"]["name"]
            below = (
                ()
                if name == "sealed"
                else tuple(item for path in paths(found["spec"]["path"]) for item in applied(ROOT / path))
            )
            yield Step(found, below, parent)
            yield from collect(below, name)


@cache
def steps(stack: str) -> dict[str, Step]:
    found = list(collect(applied(GITOPS / "clusters" / stack), None))
    assert len(found) == len({step.name for step in found})
    return {step.name: step for step in found}


def every_step() -> list[Any]:
    return [pytest.param(step, id=f"{stack}-{step.name}") for stack in STACKS for step in steps(stack).values()]


def seconds(duration: str) -> int:
    match = re.fullmatch(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?", duration)
    assert match
    hours, minutes, rest = (int(part or 0) for part in match.groups())
    return hours * 3600 + minutes * 60 + rest


@pytest.mark.parametrize("step", every_step())
def test_every_step_retries_soon_prunes_and_is_judged_in_one_way(step: Step) -> None:
    assert step.document["metadata"]["namespace"] == "flux-system"
    assert (step.spec["interval"], step.spec["retryInterval"], step.spec["prune"]) == ("1h", "30s", True)
    assert step.spec["sourceRef"] == {"kind": "GitRepository", "name": "flux-system"}
    assert bool(step.spec.get("wait")) != bool(step.spec.get("healthChecks"))
    assert {"kind": "ConfigMap", "name": "cluster-settings"} in step.spec["postBuild"]["substituteFrom"]
    assert all(dependency["namespace"] == "flux-system" for dependency in step.spec.get("dependsOn", []))


@pytest.mark.parametrize("step", every_step())
def test_a_step_outlasts_what_it_waits_for(step: Step) -> None:
    inner = [found["spec"]["timeout"] for found in step.objects if "timeout" in found.get("spec", {})]
    assert all(seconds(timeout) < seconds(step.spec["timeout"]) for timeout in inner)
    assert seconds(step.spec["timeout"]) < ROOT_SECONDS


@pytest.mark.parametrize("stack", STACKS)
def test_dependencies_exist_and_have_an_order(stack: str) -> None:
    graph = {name: step.needs for name, step in steps(stack).items()}
    assert set().union(*graph.values()) <= set(graph)
    tuple(TopologicalSorter(graph).static_order())


@pytest.mark.parametrize("stack", STACKS)
def test_the_main_steps_follow_each_other(stack: str) -> None:
    for earlier, later in pairwise(ORDER):
        assert earlier in steps(stack)[later].needs


@pytest.mark.parametrize("stack", STACKS)
def test_the_stack_file_and_the_tree_name_the_same_places(stack: str) -> None:
    config = cluster(stack)
    assert ROOT / config.flux.path == GITOPS / "clusters" / stack
    assert steps(stack)["sealed"].spec["path"] == f"./{config.sealing.directory}"
    assert not (ROOT / config.sealing.directory / "kustomization.yaml").exists()


@pytest.mark.parametrize("stack", STACKS)
def test_every_variable_has_a_value(stack: str) -> None:
    """In the step that applies it: from a ConfigMap it substitutes from, or from a default."""
    (platform,) = (found for found in steps(stack)["settings"].objects if found["kind"] == "ConfigMap")
    known = {"cluster-settings": set(cluster_settings(cluster(stack))), "platform-settings": set(platform["data"])}
    for step in steps(stack).values():
        sources = [source["name"] for source in step.spec["postBuild"]["substituteFrom"]]
        values = set().union(*(known[source] for source in sources))
        switched_off = {"BGP_LOCAL_ASN", "BGP_PEER_ASN", "BGP_PEER_ADDRESS"} if step.name == "bgp" else set()
        used = VARIABLE.findall(yaml.safe_dump_all(step.objects, width=1000))
        missing = {name for name, default in used if not default} - values - switched_off
        assert not missing, f"{step.name} substitutes {missing} from nowhere"


@pytest.mark.parametrize("stack", STACKS)
def test_a_switch_of_gits_own_is_substituted_where_it_is_used(stack: str) -> None:
    (platform,) = (found for found in steps(stack)["settings"].objects if found["kind"] == "ConfigMap")
    switches = {
        name: step.parent
        for step in steps(stack).values()
        for name, _ in VARIABLE.findall(step.spec["path"])
        if name in platform["data"]
    }
    assert set(switches) == set(platform["data"])
    for parent in switches.values():
        assert parent
        sources = steps(stack)[parent].spec["postBuild"]["substituteFrom"]
        assert "platform-settings" in {source["name"] for source in sources}


@pytest.mark.parametrize("stack", STACKS)
def test_namespaces_exist_before_flux_or_come_with_their_app(stack: str) -> None:
    provided = set(namespaces(cluster(stack))) | {"kube-system"}
    for step in steps(stack).values():
        own = {found["metadata"]["name"] for found in step.objects if found["kind"] == "Namespace"}
        assert not own & provided, "the program made this namespace"
        for found in step.objects:
            namespace = VARIABLE.sub(r"\2", found["metadata"].get("namespace", "kube-system"))
            assert namespace in provided | own


@pytest.mark.parametrize("stack", STACKS)
def test_what_unseals_is_judged_by_its_own_condition(stack: str) -> None:
    (check,) = steps(stack)["sealed"].spec["healthCheckExprs"]
    assert (check["apiVersion"], check["kind"]) == ("bitnami.com/v1alpha1", "SealedSecret")
    assert "Synced" in check["current"]
    assert "Synced" in check["failed"]


def releases(stack: str) -> dict[str, Document]:
    return {
        found["metadata"]["name"]: found
        for step in steps(stack).values()
        for found in step.objects
        if found["kind"] == "HelmRelease"
    }


@pytest.mark.parametrize("stack", STACKS)
def test_the_sealing_key_is_never_renewed(stack: str) -> None:
    values = releases(stack)["sealed-secrets"]["spec"]["values"]
    assert values["keyrenewperiod"] == "0"
    assert values["fullnameOverride"] == "sealed-secrets-controller"


@pytest.mark.parametrize("stack", STACKS)
def test_storage_takes_its_credentials_from_the_sealed_file(stack: str) -> None:
    release = releases(stack)["proxmox-csi-plugin"]
    assert release["spec"]["values"]["existingConfigSecret"] == "proxmox-csi-plugin"
    assert "config" not in release["spec"]["values"]
    assert "sealed" in steps(stack)["proxmox-csi"].needs


@pytest.mark.parametrize("stack", STACKS)
def test_releases_come_from_sources_that_stand_before_them(stack: str) -> None:
    sources = {
        (found["kind"], found["metadata"]["name"]): step
        for step in steps(stack).values()
        for found in step.objects
        if found["apiVersion"].startswith("source.toolkit.fluxcd.io/")
    }
    for release in releases(stack).values():
        spec = release["spec"]
        reference = spec.get("chartRef") or spec["chart"]["spec"]["sourceRef"]
        assert (reference["kind"], reference["name"]) in sources
        assert reference["namespace"] == "flux-system"


def test_every_manifest_is_applied_by_a_cluster() -> None:
    files = (file for file in GITOPS.rglob("*.yaml") if file.name != "kustomization.yaml")
    found = {file.resolve() for file in files if file.parent.name != "sealed"}
    used = {file for stack in STACKS for file in reached(GITOPS / "clusters" / stack)}
    for stack in STACKS:
        for step in steps(stack).values():
            if step.name != "sealed":
                used |= {file for path in paths(step.spec["path"]) for file in reached(ROOT / path)}
    assert found == used


def test_no_device_paths_no_plain_secrets_no_floating_versions() -> None:
    for file in GITOPS.rglob("*.yaml"):
        text = file.read_text(encoding="utf-8")
        assert "/dev/" not in text, file
        assert not re.search(r"(tag|version): *['\"]?(latest|\*|[~^><])", text), file
        assert all(found["kind"] != "Secret" for found in documents(file)), file
