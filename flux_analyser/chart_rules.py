"""Rules about releases and their charts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import yaml

from flux_analyser.cluster import Cluster
from flux_analyser.finding import Finding
from flux_analyser.role import release_roles
from flux_analyser.step import Document, key_of

FLOATING = ("*", ">", "<", "^", "~", "x")


def releases(cluster: Cluster) -> list[tuple[str, Document]]:
    return [(step.key, item) for step, item in cluster.objects() if item["kind"] == "HelmRelease"]


def one_owner(cluster: Cluster) -> Iterator[Finding]:
    """No release and no definition is applied by two steps."""
    owned = sorted(
        (f"{item['kind']} {key_of(item)}", step.key)
        for step, item in cluster.objects()
        if item["kind"] in {"HelmRelease", "CustomResourceDefinition"}
    )
    for what, group in groupby(owned, key=lambda pair: pair[0]):
        owners = sorted({owner for _, owner in group})
        if len(owners) > 1:
            message = f"{what} is applied by {' and by '.join(owners)}"
            yield Finding(level="failure", rule="owner", where=owners[0], message=message, fix="keep one of them")


def one_version(cluster: Cluster) -> Iterator[Finding]:
    found: dict[str, dict[str, str]] = {}
    for step, release in releases(cluster):
        chart, version = cluster.chart(release)
        if version is not None:
            found.setdefault(chart, {})[version] = step
    for chart, versions in found.items():
        if len(versions) > 1:
            message = f"chart {chart} in {len(versions)} versions: " + ", ".join(
                f"{version} ({step})" for version, step in sorted(versions.items())
            )
            yield Finding(level="failure", rule="skew", where=cluster.name, message=message, fix="bring them together")


def pinned(cluster: Cluster) -> Iterator[Finding]:
    for step, release in releases(cluster):
        chart, version = cluster.chart(release)
        if version is None or version.startswith(FLOATING):
            message = f"chart {chart} is not pinned ({version or 'no version'})"
            yield Finding(level="warning", rule="pin", where=step, message=message, fix="name one version")


def storage_role(cluster: Cluster) -> Iterator[Finding]:
    if cluster.settings.get("STORAGE_ROLE") != "consumer":
        return
    for step, release in releases(cluster):
        if "storage operator" in release_roles(release):
            message = f"{cluster.chart(release)[0]} runs on a cluster that consumes another one's storage"
            yield Finding(level="failure", rule="storage", where=step, message=message, fix="keep it on the provider")


def dead_values(cluster: Cluster, charts: Path) -> Iterator[Finding]:
    """Values that no chart of this name below `charts` has a default for."""
    for step, release in releases(cluster):
        file = charts / cluster.chart(release)[0] / "values.yaml"
        if file.is_file():
            known = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
            for key in dead_keys(release.get("spec", {}).get("values") or {}, known):
                message = f"HelmRelease {key_of(release)} sets {key}, which its chart does not know"
                yield Finding(
                    level="failure", rule="values", where=step, message=message, fix="check the chart's values"
                )


def dead_keys(given: Any, known: Any, path: str = "") -> list[str]:
    """Where a chart's own default is an empty mapping, anything may be given."""
    if not isinstance(given, Mapping) or not isinstance(known, Mapping) or not known:
        return []
    dead = [f"{path}{key}" for key in given if key not in known]
    return dead + [
        key for name in given if name in known for key in dead_keys(given[name], known[name], f"{path}{name}.")
    ]


def skew_between(clusters: Iterable[Cluster]) -> Iterator[Finding]:
    """Clusters may move one after the other, so this is only worth a look."""
    found: dict[str, dict[str, set[str]]] = {}
    for cluster in clusters:
        for _, release in releases(cluster):
            chart, version = cluster.chart(release)
            if version is not None:
                found.setdefault(chart, {}).setdefault(version, set()).add(cluster.name)
    for chart, versions in sorted(found.items()):
        if len(versions) > 1:
            message = ", ".join(
                f"{version} in {', '.join(sorted(names))}" for version, names in sorted(versions.items())
            )
            yield Finding(level="warning", rule="skew", where=f"chart {chart}", message=message)
