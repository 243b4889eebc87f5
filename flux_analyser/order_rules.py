"""Rules about who waits for whom."""

from __future__ import annotations

from collections.abc import Iterator

from flux_analyser.cluster import Cluster
from flux_analyser.finding import Finding
from flux_analyser.graph import Graph
from flux_analyser.role import CRITICAL, OWNERS, roles_of
from flux_analyser.step import Document, Step, dependencies, group_of, key_of, release_timeout


def named_dependencies(cluster: Cluster) -> Iterator[Finding]:
    """A dependency names its namespace and exists."""
    releases = {key_of(item) for _, item in cluster.objects() if item["kind"] == "HelmRelease"}
    for step in cluster.steps.values():
        yield from _named(step.document, set(cluster.steps), step.key)
        for release in step.releases:
            yield from _named(release, releases, f"{step.key} HelmRelease {key_of(release)}")


def _named(document: Document, known: set[str], where: str) -> Iterator[Finding]:
    for dependency in document.get("spec", {}).get("dependsOn") or []:
        if "namespace" not in dependency:
            yield _failure(
                "namespace", where, f"depends on {dependency['name']} without its namespace", "name the namespace"
            )
    for key in dependencies(document):
        if key not in known:
            yield _failure(
                "unknown", where, f"depends on {key}, which nothing in the tree is", "check name and namespace"
            )


def no_cycles(cluster: Cluster) -> Iterator[Finding]:
    if cycle := Graph.of(cluster).cycle:
        yield _failure("cycle", cycle[0], f"waits for itself: {' → '.join(cycle)}", "take one dependency out")


def critical_edges(cluster: Cluster) -> Iterator[Finding]:
    """What is not in the tree is provided by somebody else, before Flux."""
    graph = Graph.of(cluster)
    for earlier, later in CRITICAL:
        if earlier in cluster.provided:
            continue
        providers = {step.key for step in cluster.steps.values() if earlier in roles_of(step)}
        for step in cluster.steps.values():
            if later in roles_of(step) and providers and not providers & (graph.before[step.key] | {step.key}):
                yield _failure(
                    "critical",
                    step.key,
                    f"has {later} and does not wait for {earlier} ({', '.join(sorted(providers))})",
                    f"dependsOn {sorted(providers)[0]}",
                )


def custom_resources(cluster: Cluster) -> Iterator[Finding]:
    """A custom resource comes after the step that brings its definition."""
    graph = Graph.of(cluster)
    definitions = {
        (item["spec"]["group"], item["spec"]["names"]["kind"]): step.key
        for step, item in cluster.objects()
        if item["kind"] == "CustomResourceDefinition"
    }
    owners = {role: step.key for step in cluster.steps.values() for role in roles_of(step) - cluster.provided}
    for step, kind, group in sorted({(step.key, item["kind"], group_of(item)) for step, item in cluster.objects()}):
        definer = definitions.get((group, kind)) or owners.get(OWNERS.get(group, ""))
        if definer == step:
            yield _failure("crd", step, f"holds {kind} beside its definition", "split it: definitions first")
        elif definer and definer not in graph.before[step]:
            yield _failure(
                "crd", step, f"holds {kind}, which {definer} defines, without waiting for it", f"dependsOn {definer}"
            )


def timeouts(cluster: Cluster) -> Iterator[Finding]:
    """What waits must outlast what it waits for."""
    for step in cluster.steps.values():
        if step.waits:
            yield from _outlasted(step, cluster)


def _outlasted(step: Step, cluster: Cluster) -> Iterator[Finding]:
    inner = [(f"HelmRelease {key_of(release)}", release_timeout(release)) for release in step.releases]
    inner += [(other.key, other.timeout) for other in cluster.steps.values() if other.parent == step.key]
    for name, limit in inner:
        if limit >= step.timeout:
            message = f"gives up after {step.timeout:.0f} s and waits for {name}, which may take {limit:.0f} s"
            yield _failure("timeout", step.key, message, "the outer time limit must be the longer one")


def _failure(rule: str, where: str, message: str, fix: str) -> Finding:
    return Finding(level="failure", rule=rule, where=where, message=message, fix=fix)
