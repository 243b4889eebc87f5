"""A pod on its node with everything that decides what becomes of it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Protocol

from lab.kubernetes import reach
from lab.kubernetes.api import Object
from lab.kubernetes.crash_loop import CrashLoop
from lab.kubernetes.machine import Machine
from lab.kubernetes.pod_inputs import PodInputs
from lab.kubernetes.pod_status import Verdict, crashing, refused, running
from lab.kubernetes.surroundings import Surroundings

SOON, LATER, CALM = 0.3, 1.0, 2.0


@dataclass(frozen=True, kw_only=True)
class Decision:
    verdict: Verdict
    again: float | None = None
    """Seconds after which to look again; None waits for something to change."""


class Behaviour(Protocol):
    """What stands for a pod's containers once nothing holds them up."""

    async def decide(self) -> Decision: ...

    async def stop(self) -> None: ...


class PodScene:
    def __init__(self, pod: Object, machine: Machine, around: Surroundings) -> None:
        self.pod = pod
        self.machine = machine
        self.around = around
        self.node: Object = {}
        """The Node object, as last seen."""
        self.address: str | None = None
        self.inputs = PodInputs(around.api, pod)
        self.crashes = CrashLoop(around.pace.scale)

    @property
    def name(self) -> str:
        return str(self.pod["metadata"]["name"])

    @property
    def namespace(self) -> str:
        return str(self.pod["metadata"]["namespace"])

    @property
    def labels(self) -> dict[str, str]:
        labels: dict[str, str] = self.pod["metadata"].get("labels") or {}
        return labels

    @property
    def pod_cidrs(self) -> list[str]:
        return list((self.node.get("spec") or {}).get("podCIDRs") or [])

    def struck_by(self, fault: str) -> bool:
        """A fault may name the node, the pod or the workload it belongs to."""
        names = (self.machine.node.name, self.name, workload_name(self.pod))
        return any(self.around.faults.active(fault, name) for name in names)

    async def unreachable(self, container: Object) -> str | None:
        """Why this container could not reach the API server from here; None when it could."""
        address = reach.api_address(self.inputs.environment(container))
        if address is None and not self.pod["spec"].get("hostNetwork"):
            return None
        settings = self.around.settings
        proxied = not settings.component("proxy").get("disabled")
        if await reach.answers(address, self.machine, self.around.endpoints, proxied=proxied):
            return None
        return reach.refusal(address, settings.service_address(1))

    def runs(self, *, ready: bool = True, message: str = "", again: float | None = None) -> Decision:
        verdict = running(ready=ready, message=message, restarts=self.crashes.restarts)
        return Decision(verdict=verdict, again=again)

    def refuses(self, reason: str, message: str) -> Decision:
        return Decision(verdict=refused(reason, message), again=LATER)

    def crash(self, message: str) -> Decision:
        """A container that starts and ends; the kubelet tries again after a while, longer each time."""
        moment = time.monotonic()
        if not self.crashes.resting(moment) or message != self.crashes.message:
            self.crashes.failed(message, moment)
        return self.crashed(again=LATER)

    def crashed(self, *, again: float) -> Decision:
        crashes = self.crashes
        verdict = crashing(crashes.message, restarts=crashes.restarts, exit_code=crashes.exit_code)
        return Decision(verdict=verdict, again=again)


def workload_name(pod: Object) -> str:
    """The controller's name; a Deployment's rather than that of its replica set."""
    owners = pod["metadata"].get("ownerReferences") or []
    owner = next((item for item in owners if item.get("controller")), None)
    if owner is None:
        return str(pod["metadata"]["name"])
    name = str(owner["name"])
    return name.rpartition("-")[0] if owner["kind"] == "ReplicaSet" else name
