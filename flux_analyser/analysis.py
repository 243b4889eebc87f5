"""All rules over one cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from flux_analyser import chart_rules, health_rules, order_rules
from flux_analyser.cluster import Cluster
from flux_analyser.finding import Finding
from flux_analyser.graph import Graph

RULES: tuple[Callable[[Cluster], Iterator[Finding]], ...] = (
    order_rules.named_dependencies,
    order_rules.no_cycles,
    order_rules.timeouts,
    health_rules.one_judgement,
    health_rules.checks_exist,
    health_rules.depended_on_means_judged,
    health_rules.retries,
    health_rules.plain_secrets,
    chart_rules.one_owner,
    chart_rules.one_version,
    chart_rules.pinned,
    chart_rules.storage_role,
)
ORDERED: tuple[Callable[[Cluster], Iterator[Finding]], ...] = (
    order_rules.critical_edges,
    order_rules.custom_resources,
)
"""Those that need an order, which a cycle has not."""


@dataclass(frozen=True, kw_only=True)
class Analysis:
    cluster: Cluster
    graph: Graph
    findings: list[Finding]

    @property
    def failed(self) -> bool:
        return any(finding.level == "failure" for finding in self.findings)


def analyse(cluster: Cluster, charts: Path | None = None) -> Analysis:
    graph = Graph.of(cluster)
    found = {*cluster.findings, *(finding for rule in RULES for finding in rule(cluster))}
    if not graph.cycle:
        found |= {finding for rule in ORDERED for finding in rule(cluster)}
    if charts is not None:
        found |= set(chart_rules.dead_values(cluster, charts))
    return Analysis(cluster=cluster, graph=graph, findings=sorted(found))
