"""How long things may take, how nodes are rolled, and what is done when they fail."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated

from pydantic import Field

from .values import Integer, Section

Seconds = Annotated[Integer, Field(ge=1, le=86_400)]

DEADLINES = MappingProxyType({
    "GP": 60, "G1": 300, "G2": 300, "G3": 600, "G4": 600, "G5": 600, "G6": 120, "G7": 600,
    "G8b": 60, "G8": 120, "G9": 600, "G10": 600, "G11": 300, "G13a": 60, "G12c": 180,
    "G12a": 180, "G11b": 300, "G12": 60, "G12b": 30, "G13": 300, "G14": 600, "G15": 600,
    "G16": 600, "G17": 300, "G18": 1200, "G19": 600,
})  # fmt: skip
"""Seconds a gate waits by default, in the order of the chain."""


class Timeouts(Section):
    """Seconds; each has to be shorter than the next, and the last shorter than the gates that wait for Flux."""

    attempt: Seconds = 10
    helm_release: Seconds = 300
    kustomization: Seconds = 420


class Recovery(Section):
    auto: bool = False
    """Climb the recovery ladder instead of only printing it."""


class Rollout(Section):
    nodes: list[str] = Field(default_factory=list)
    """Nodes whose machine configuration may change in this update."""
    cilium: bool = False
    """Whether Cilium's values and version may change in this update."""
