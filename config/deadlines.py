"""Rules on the order of timeouts: what waits outside has to outlast what waits inside."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from .errors import Problem, nearest
from .model import ClusterConfig
from .timing import DEADLINES

FLUX_GATES = ("G15", "G16", "G18")
"""They wait for Kustomizations, which wait for HelmReleases."""


def timeouts_are_in_order(cluster: ClusterConfig) -> Iterator[Problem]:
    timeouts = cluster.timeouts
    gate = min(FLUX_GATES, key=cluster.deadline)
    steps = [
        ("timeouts.attempt", timeouts.attempt),
        ("timeouts.helm_release", timeouts.helm_release),
        ("timeouts.kustomization", timeouts.kustomization),
        (f"deadlines.{gate}", cluster.deadline(gate)),
    ]
    for (inner, short), (outer, long) in pairwise(steps):
        if short >= long:
            yield Problem(
                path=f"cluster.{outer}",
                message=f"{long} s is not longer than {inner}, {short} s: the outer would give up first",
                fix="order them attempt < helm_release < kustomization < gate",
            )


def deadlines_outlast_an_attempt(cluster: ClusterConfig) -> Iterator[Problem]:
    for gate in DEADLINES:
        if cluster.deadline(gate) <= cluster.timeouts.attempt and gate not in FLUX_GATES:
            yield Problem(
                path=f"cluster.deadlines.{gate}",
                message=f"{cluster.deadline(gate)} s is not longer than timeouts.attempt, {cluster.timeouts.attempt} s",
                fix="a gate has to outlast one attempt: raise it, or lower timeouts.attempt",
            )


def deadlines_name_gates(cluster: ClusterConfig) -> Iterator[Problem]:
    for gate in cluster.deadlines:
        if gate not in DEADLINES:
            yield Problem(
                path=f"cluster.deadlines.{gate}",
                message=f"{gate} is not a gate",
                fix=nearest(gate, DEADLINES, f"choose from {', '.join(DEADLINES)}"),
            )
