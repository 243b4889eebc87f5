"""G4: on every machine, workers too, Talos itself says that the kubelet runs and is healthy."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from grpclib.const import Status
from pydantic.dataclasses import dataclass

from gates import machine_state
from gates.talos import Machine, Seen, TalosSession
from gates.target import STRICT, NodeRef, TalosCredentials, parse
from talos_api.client import TalosClient
from talos_api.errors import TalosError
from talos_api.resources import (
    ADDRESS_STATUS,
    DIAGNOSTIC,
    KUBELET_SPEC,
    MACHINE_STATUS,
    MACHINE_STATUS_ID,
    SERVICE,
    TIME_STATUS,
    TIME_STATUS_ID,
    Kind,
)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class KubeletsTarget:
    nodes: list[NodeRef]
    talos: TalosCredentials
    talos_version: str
    kubernetes_version: str
    endpoint: str


class KubeletsSession(TalosSession):
    """A Node can say Ready while its kubelet is dead: Talos is asked, not Kubernetes."""

    watched = (
        (SERVICE, "kubelet"),
        (MACHINE_STATUS, MACHINE_STATUS_ID),
        (TIME_STATUS, TIME_STATUS_ID),
        (DIAGNOSTIC, None),
        (ADDRESS_STATUS, None),
    )

    def __init__(self, target: Mapping[str, Any]) -> None:
        self._target = parse(KubeletsTarget, target)
        super().__init__(self._target.nodes, self._target.talos)

    async def examine(self, machine: Machine) -> Seen:
        state = await _read(machine.client)
        node, target = machine.node, self._target
        old = machine_state.outdated(node, state, target.talos_version, target.kubernetes_version)
        findings = machine_state.findings(node, state, target.endpoint)
        if old and not findings:
            return Seen(node=node, findings=tuple(old), fatal=True)
        evidence = f"{node.name}: kubelet {state.kubelet_version} healthy, Talos {state.talos_version}"
        return Seen(node=node, findings=tuple(findings), evidence=evidence)


async def _read(client: TalosClient) -> machine_state.MachineState:
    (status, time, kubelet), (diagnostics, addresses), services, version = await asyncio.gather(
        asyncio.gather(
            _spec(client, MACHINE_STATUS, MACHINE_STATUS_ID),
            _spec(client, TIME_STATUS, TIME_STATUS_ID),
            _spec(client, KUBELET_SPEC, "kubelet"),
        ),
        asyncio.gather(client.list(DIAGNOSTIC), client.list(ADDRESS_STATUS)),
        client.services(),
        client.version(),
    )
    return machine_state.MachineState(
        status=status,
        kubelet=services.get("kubelet"),
        diagnostics=[(each.id, each.spec or {}) for each in diagnostics],
        time=time,
        addresses=[each.spec or {} for each in addresses],
        kubelet_image=str(kubelet.get("image", "")),
        talos_version=version.version.tag,
    )


async def _spec(client: TalosClient, kind: Kind, name: str) -> dict[str, Any]:
    """Empty while the resource does not exist."""
    try:
        return dict((await client.get(kind, name)).spec or {})
    except TalosError as error:
        if error.status is Status.NOT_FOUND:
            return {}
        raise
