"""Rules on the charts and CRDs installed before Flux."""

from __future__ import annotations

import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

from .errors import Problem, nearest
from .model import ClusterConfig

TAKEN = ("cilium", "flux-operator", "flux")
FLOATING = re.compile(r"/(latest|main|master|head)(/|$)", re.IGNORECASE)


def charts_have_names_of_their_own(cluster: ClusterConfig) -> Iterator[Problem]:
    seen: set[str] = set(TAKEN)
    for index, chart in enumerate(cluster.charts):
        if chart.name in seen:
            yield Problem(
                path=f"cluster.charts[{index}].name",
                message=f"{chart.name} is already the name of another release",
                fix="rename it, or remove one of the two",
            )
        seen.add(chart.name)


def charts_need_known_charts(cluster: ClusterConfig) -> Iterator[Problem]:
    names = [chart.name for chart in cluster.charts]
    for index, chart in enumerate(cluster.charts):
        for need in chart.needs:
            if need not in names:
                yield Problem(
                    path=f"cluster.charts[{index}].needs",
                    message=f"{chart.name} needs {need}, which is not among the charts",
                    fix=nearest(need, names, f"add {need} to charts, or remove it here"),
                )


def charts_do_not_wait_for_each_other(cluster: ClusterConfig) -> Iterator[Problem]:
    try:
        TopologicalSorter({chart.name: chart.needs for chart in cluster.charts}).prepare()
    except CycleError as error:
        yield Problem(
            path="cluster.charts",
            message=f"these wait for each other: {' → '.join(error.args[1])}",
            fix="remove one of the needs",
        )


def charts_have_a_source(cluster: ClusterConfig) -> Iterator[Problem]:
    for index, chart in enumerate(cluster.charts):
        if chart.chart.startswith("oci://") == (chart.repository is not None):
            yield Problem(
                path=f"cluster.charts[{index}].repository",
                message=f"the chart {chart.chart} is found by exactly one of an oci:// address and a repository",
                fix="chart: oci://… without repository, or a chart's name with repository: https://…",
            )


def dns_is_somewhere(cluster: ClusterConfig) -> Iterator[Problem]:
    charts = [chart.name for chart in cluster.charts if chart.gate == "G12a"]
    if cluster.talos.coredns == bool(charts):
        problem = f"and {', '.join(charts)} of charts brings another" if charts else "and no chart has gate: G12a"
        yield Problem(
            path="cluster.talos.coredns",
            message=f"is {str(cluster.talos.coredns).lower()} {problem}",
            fix="have one cluster DNS: Talos's, or a chart with gate: G12a and talos.coredns: false",
        )


def crds_are_pinned(cluster: ClusterConfig) -> Iterator[Problem]:
    for index, crds in enumerate(cluster.crds):
        if FLOATING.search(crds.url):
            yield Problem(
                path=f"cluster.crds[{index}].url",
                message=f"{crds.url} floats",
                fix="name one exact release in the address",
            )


def namespaces_are_our_own(cluster: ClusterConfig) -> Iterator[Problem]:
    for name in cluster.namespaces:
        if name.startswith("kube-"):
            yield Problem(
                path=f"cluster.namespaces.{name}",
                message=f"{name} is Kubernetes's own namespace",
                fix="remove it; names beginning with kube- are reserved",
            )
