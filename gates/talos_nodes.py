"""G1 and G2: every machine answers, and then: every machine carries this cluster's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic.dataclasses import dataclass

from gates.talos import Machine, Seen, TalosSession, in_maintenance
from gates.talos_findings import unconfigured
from gates.target import STRICT, NodeRef, TalosCredentials, parse


@dataclass(frozen=True, kw_only=True, config=STRICT)
class TalosTarget:
    nodes: list[NodeRef]
    talos: TalosCredentials


async def configured(machine: Machine) -> str | None:
    """The Talos version of a machine that knows us; None in maintenance mode."""
    known = machine.seen is not None and machine.seen.facts is not None
    # Without credentials first: only then is a certificate of another CA known to be another cluster's.
    if not known and await in_maintenance(machine):
        return None
    return (await machine.client.version()).version.tag


class ApiSession(TalosSession):
    """In maintenance mode, or configured with this cluster's credentials."""

    def __init__(self, target: Mapping[str, Any]) -> None:
        parsed = parse(TalosTarget, target)
        super().__init__(parsed.nodes, parsed.talos)

    async def examine(self, machine: Machine) -> Seen:
        node = machine.node
        version = await configured(machine)
        state = f"configured, Talos {version}" if version else "in maintenance mode"
        return Seen(node=node, evidence=f"{node.name}: {state}", facts=version)


class ConfiguredSession(ApiSession):
    """Out of maintenance mode."""

    async def examine(self, machine: Machine) -> Seen:
        node = machine.node
        version = await configured(machine)
        if version is None:
            return Seen(node=node, findings=(unconfigured(node),))
        return Seen(node=node, evidence=f"{node.name}: configured, Talos {version}", facts=version)
