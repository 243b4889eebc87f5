"""What every component of a stack needs in order to gate its stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pulumi import Resource, ResourceOptions

from components.health_gate import HealthGate, HealthGateArgs
from components.questions import Question
from config import ClusterConfig


@dataclass(frozen=True, kw_only=True)
class Stage:
    config: ClusterConfig
    trigger: str
    """Digest of the stack's desired state."""

    def gate(
        self, question: Question, *, after: Sequence[Resource], parent: Resource | None = None, label: str | None = None
    ) -> HealthGate:
        """A gate of this cluster, named after its probe (or its label where a probe serves twice), behind `after`."""
        args = HealthGateArgs(
            gate=question.gate,
            probe=question.probe,
            target=question.target,
            deadline=self.config.deadline(question.gate),
            trigger=self.trigger,
        )
        opts = ResourceOptions(parent=parent, depends_on=list(after))
        return HealthGate(f"{self.config.name}-{label or question.probe}", args, opts)
