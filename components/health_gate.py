"""A named gate: depending on it is depending on the truth of what it checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi import ComponentResource, Input, Output, ResourceOptions

from gates.provider import GateProvider


class Gate(pulumi.dynamic.Resource, module="groundwork", name="Gate"):
    """The dynamic resource whose creation waits."""


GATE_TYPE = "pulumi-python:dynamic/groundwork:Gate"


@dataclass(frozen=True, kw_only=True)
class HealthGateArgs:
    gate: str
    """Its name in the catalogue of gates, such as G4."""
    probe: str
    """What it asks, such as kubelets."""
    target: Mapping[str, Any]
    """Whom it asks: nodes, addresses, credentials; may hold outputs and secrets."""
    deadline: float
    trigger: Input[str]
    """Digest of the whole desired state: any change proves the chain anew."""


class HealthGate(ComponentResource):
    """Waits until its probe finds everything healthy, or fails with a diagnosis.

    It has no outputs to build on: in a preview they would merely echo its inputs.
    """

    def __init__(self, name: str, args: HealthGateArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("groundwork:index:HealthGate", name, {}, opts)
        Gate(
            GateProvider(),
            name,
            {
                "gate": args.gate,
                "probe": args.probe,
                "target": dict(args.target),
                "deadline": args.deadline,
                "trigger": args.trigger,
                "urn": pulumi.create_urn(name, GATE_TYPE, _without_dependencies(self.urn)),
            },
            ResourceOptions(parent=self),
        )
        self.register_outputs({})


def _without_dependencies(urn: Output[str]) -> Output[str]:
    """The same text: as an output of its parent it would make the gate wait for itself."""

    async def text() -> str:
        return await urn.future() or ""

    return Output.from_input(text())
