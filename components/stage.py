"""What every component of a stack needs in order to gate its stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pulumi import Resource, ResourceOptions

from components.health_gate import HealthGate, HealthGateArgs
from config import ClusterConfig


@dataclass(frozen=True, kw_only=True)
class Stage:
    config: ClusterConfig
    trigger: str
    """Digest of the stack's desired state."""

    def gate(
        self,
        gate: str,
        probe: str,
        target: Mapping[str, Any],
        *,
        parent: Resource | None,
        after: Sequence[Resource],
        label: str | None = None,
    ) -> HealthGate:
        """A gate of this cluster, named after its probe (or its label where a probe serves twice), behind `after`."""
        args = HealthGateArgs(
            gate=gate, probe=probe, target=target, deadline=self.config.deadline(gate), trigger=self.trigger
        )
        opts = ResourceOptions(parent=parent, depends_on=list(after))
        return HealthGate(f"{self.config.name}-{label or probe}", args, opts)

    def nodes(self, role: str | None = None) -> list[dict[str, Any]]:
        """The nodes as gates know them."""
        return [
            {"name": name, "address": str(node.address), "vmid": node.vmid, "host": node.host, "role": node.role}
            for name, node in self.config.nodes.items()
            if role in (None, node.role)
        ]
