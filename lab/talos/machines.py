"""All machines of the lab: what the hypervisor switches on, and what then answers on the network."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from lab.boot import Boot, Power
from lab.faults import Faults
from lab.pace import Pace
from lab.request_log import RequestLog
from lab.talos.fault_watch import FaultWatch
from lab.talos.kubernetes import KubernetesCluster
from lab.talos.machine import Machine
from lab.talos.surroundings import Surroundings
from talos_api.connection import PORT

NODE_SECONDS = 0.5


class Machines(Power):
    """Made inside a running event loop; `close` ends everything it started."""

    def __init__(  # noqa: PLR0917 - one seam for everything the lab has
        self,
        clusters: Callable[[str], KubernetesCluster],
        check_config: Callable[[bytes], Awaitable[str | None]],
        directory: Path,
        faults: Faults,
        pace: Pace,
        log: RequestLog,
        *,
        port: int = PORT,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        watch = FaultWatch(faults)
        self._around = Surroundings(
            clusters=clusters,
            check_config=check_config,
            faults=watch,
            pace=pace,
            log=log,
            port=port,
            directory=directory,
        )
        self._around.spawn(watch.run())
        self._around.spawn(self._follow_nodes())

    async def power_on(self, boot: Boot) -> None:
        machines = self._around.machines
        if boot.vmid not in machines:
            machines[boot.vmid] = Machine(self._around, boot)
        await machines[boot.vmid].switch_on(boot)

    async def power_off(self, vmid: int, *, graceful: bool) -> None:  # noqa: ARG002  - it is off either way
        if machine := self._around.machines.get(vmid):
            await machine.switch_off()

    async def erase(self, vmid: int) -> None:
        if machine := self._around.machines.pop(vmid, None):
            await machine.switch_off()
            if machine.disk.config is not None:
                await self._around.bury(machine.disk.config.cluster_id)

    def addresses(self, vmid: int) -> list[str]:
        machine = self._around.machines.get(vmid)
        return [str(address) for address in machine.addresses] if machine and machine.agent else []

    def stages(self) -> dict[str, str]:
        """How far each machine is, by name."""
        return {machine.name: machine.stage for machine in self._around.machines.values()}

    async def _follow_nodes(self) -> None:
        """Kubernetes says when a Node becomes Ready, and a machine's readiness with it."""
        while True:
            await asyncio.sleep(NODE_SECONDS)
            for machine in self._around.machines.values():
                if machine.booted:
                    machine.refresh()

    async def close(self) -> None:
        await asyncio.gather(*(machine.switch_off() for machine in self._around.machines.values()))
        for task in list(self._around.tasks):
            task.cancel()
        await asyncio.gather(*self._around.tasks, return_exceptions=True)
