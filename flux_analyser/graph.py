"""Who really waits for whom, and what follows from it: cycles, tiers, the longest chain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter

from flux_analyser.cluster import Cluster
from flux_analyser.step import Step


@dataclass(frozen=True)
class Graph:
    steps: Mapping[str, Step]

    @classmethod
    def of(cls, cluster: Cluster) -> Graph:
        return cls(cluster.steps)

    @cached_property
    def waits_for(self) -> dict[str, set[str]]:
        """The steps that must be Ready before each may start.

        A step starts no earlier than the one that applies it, and a dependency that waits is Ready only when everything
        below it is.
        """
        return {key: self._waits_for(step) for key, step in self.steps.items()}

    @cached_property
    def cycle(self) -> list[str]:
        """One circle of steps that wait for each other; empty when there is none."""
        try:
            TopologicalSorter(self.waits_for).prepare()
        except CycleError as error:
            circle: list[str] = error.args[1]
            return circle[::-1]
        return []

    @cached_property
    def tiers(self) -> list[list[str]]:
        """Steps that can come up side by side; without a cycle only."""
        sorter = TopologicalSorter(self.waits_for)
        sorter.prepare()
        tiers = []
        while sorter.is_active():
            ready = sorted(sorter.get_ready())
            tiers.append(ready)
            sorter.done(*ready)
        return tiers

    @cached_property
    def before(self) -> dict[str, set[str]]:
        """Everything that is Ready before each step starts, at any distance."""
        before: dict[str, set[str]] = {}
        for key in (key for tier in self.tiers for key in tier):
            direct = self.waits_for[key]
            before[key] = direct.union(*(before[other] for other in direct))
        return before

    @cached_property
    def critical_path(self) -> list[str]:
        """The longest chain; of equally long ones that with the longest time limits."""
        best: dict[str, tuple[int, float, list[str]]] = {}
        for key in (key for tier in self.tiers for key in tier):
            length, limit, path = max((best[other] for other in self.waits_for[key]), default=(0, 0.0, []))
            best[key] = (length + 1, limit + self.steps[key].timeout, [*path, key])
        return max(best.values(), default=(0, 0.0, []))[2]

    def children(self, key: str) -> set[str]:
        """Every step below this one."""
        direct = {child for child, step in self.steps.items() if step.parent == key}
        return direct.union(*(self.children(child) for child in direct))

    def _waits_for(self, step: Step) -> set[str]:
        needed: set[str] = set()
        for key in step.needs:
            if key in self.steps:
                needed |= {key} | (self.children(key) if self.steps[key].waits else set())
        if step.parent is not None:
            needed |= self._waits_for(self.steps[step.parent])
        return needed
