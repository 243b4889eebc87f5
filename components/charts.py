"""The charts a cluster needs before Flux, each behind the ones it names and before the gate it names."""

from __future__ import annotations

from dataclasses import dataclass
from graphlib import TopologicalSorter

import pulumi_kubernetes as kubernetes
from pulumi import ComponentResource, Resource, ResourceOptions

from components import questions
from components.questions import Access, Question
from components.retained import retained
from components.stage import Stage
from config import ChartSpec


@dataclass(frozen=True, kw_only=True)
class ChartsArgs:
    stage: Stage
    access: Access


class Charts(ComponentResource):
    def __init__(self, name: str, args: ChartsArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("groundwork:index:Charts", name, {}, opts)
        charts = {chart.name: chart for chart in args.stage.config.charts}
        settled: dict[str, Resource] = {}
        for each in TopologicalSorter({chart.name: chart.needs for chart in charts.values()}).static_order():
            settled[each] = self._settle(args, charts[each], [settled[need] for need in charts[each].needs])
        self.register_outputs({})

    def _settle(self, args: ChartsArgs, chart: ChartSpec, after: list[Resource]) -> Resource:
        """The release, or its gate where it has one: what the next chart has to wait for."""
        release = kubernetes.helm.v3.Release(
            chart.name,
            name=chart.name,
            chart=chart.chart,
            version=chart.version,
            namespace=chart.namespace,
            repository_opts={"repo": chart.repository} if chart.repository else None,
            values=dict(chart.values),
            skip_await=True,
            opts=retained(self, after=after),
        )
        if chart.gate is None:
            return release
        return args.stage.gate(self._question(args, chart), parent=self, after=[release])

    def _question(self, args: ChartsArgs, chart: ChartSpec) -> Question:
        if chart.gate == "G11b":
            return questions.cloud_provider(args.stage.config, args.access)
        return questions.dns(args.access, chart.namespace, chart.name)
