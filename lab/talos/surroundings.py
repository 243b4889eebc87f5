"""What all machines share."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.pace import Pace
from lab.request_log import RequestLog
from lab.talos.fault_watch import FaultWatch
from lab.talos.kubernetes import KubernetesCluster
from lab.talos.membership import Membership

if TYPE_CHECKING:
    from lab.talos.machine import Machine

_log = logging.getLogger(__name__)


@dataclass(kw_only=True)
class Surroundings:
    clusters: Callable[[str], KubernetesCluster]
    check_config: Callable[[bytes], Awaitable[str | None]]
    faults: FaultWatch
    pace: Pace
    log: RequestLog
    port: int
    directory: Path
    """For the machines' kernel logs."""
    machines: dict[int, Machine] = field(default_factory=dict)
    """By VM id."""
    memberships: dict[str, Membership] = field(default_factory=dict)
    generations: dict[str, int] = field(default_factory=dict)
    """How many clusters of that id are dead."""
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def membership(self, cluster_id: str) -> Membership:
        if cluster_id not in self.memberships:
            generation = self.generations.get(cluster_id, 0)
            kubernetes = self.clusters(f"{cluster_id}.{generation}" if generation else cluster_id)
            self.memberships[cluster_id] = Membership(cluster_id, kubernetes, self.faults.wake)
        return self.memberships[cluster_id]

    async def bury(self, cluster_id: str) -> None:
        """The last disk with etcd data is gone, and the cluster with it; another may be born under the same id."""
        survivors = [machine.disk for machine in self.machines.values() if machine.disk.etcd_data]
        if any(disk.config is not None and disk.config.cluster_id == cluster_id for disk in survivors):
            return
        membership = self.memberships.pop(cluster_id, None)
        if membership is not None and membership.bootstrapped.is_set():
            self.generations[cluster_id] = self.generations.get(cluster_id, 0) + 1
            await membership.kubernetes.close()

    def find(self, target: str) -> Machine | None:
        """A machine that is on, by one of its addresses or its name."""
        for machine in self.machines.values():
            if machine.on and (target == machine.name or target in machine.hosts):
                return machine
        return None

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """In the background, kept from the garbage collector."""
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            _log.error("a machine's background work failed", exc_info=error)
