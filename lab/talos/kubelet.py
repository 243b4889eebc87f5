"""A machine's kubelet: the service, and the Node it registers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from lab.kubernetes import Node
from lab.talos.service import Service, State

if TYPE_CHECKING:
    from lab.talos.machine import Machine

_log = logging.getLogger(__name__)

FAULTS = ("kubelet-waiting-for-volumes", "kubelet-dead", "node-ready-lies")
RETRY_SECONDS = 0.5
WAITING_FOR_VOLUMES = "Waiting for volumes /var/lib/kubelet, /var/log/containers, /var/log/pods to be mounted"
DIED = "Failed to run: task kubelet failed: exit code 255"


class Kubelet:
    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._restart = asyncio.Event()
        self._registration: asyncio.Task[None] | None = None
        self.node_name: str | None = None
        """What it registered as."""

    @property
    def loaded(self) -> bool:
        return self._machine.services.get("kubelet") is not None

    @property
    def node_ready(self) -> bool:
        """Whether its Node says it is Ready, as far as the cluster can tell."""
        ask = getattr(self._machine.membership.kubernetes, "node_ready", None)
        return bool(ask and self.node_name and ask(self.node_name))

    def restart(self) -> None:
        self._restart.set()

    async def run(self) -> None:
        service = self._machine.services.add("kubelet")
        try:
            while True:
                self._restart.clear()
                await self._start(service)
                self._register()
                await self._machine.around.faults.until_any(self._broken, self._restart)
                service.move(State.STOPPING, "Sending SIGTERM to task kubelet")
                await self._unregister()
        finally:
            await self._unregister()

    async def _start(self, service: Service) -> None:
        machine = self._machine
        service.move(State.STARTING, "Starting service")
        if not machine.time_synced:
            service.move(State.WAITING, "Waiting for time sync")
            await machine.around.faults.until(lambda: machine.time_synced)
        await self._blocked(service, "kubelet-waiting-for-volumes", State.WAITING, WAITING_FOR_VOLUMES, ready=False)
        await self._blocked(service, "kubelet-dead", State.FAILED, DIED, ready=False)
        await self._blocked(service, "node-ready-lies", State.FAILED, DIED, ready=True)
        service.move(State.PREPARING, "Running pre state")
        await machine.around.pace.wait("kubelet")
        service.move(State.PREPARING, "Creating service runner")
        service.start(machine.services.next_pid())

    async def _blocked(self, service: Service, fault: str, state: State, message: str, *, ready: bool) -> None:
        """Stuck as long as the fault is there; the Node may go on saying it is Ready."""
        found = self._machine.around.faults.active(fault, self._machine.name)
        if found is None:
            return
        service.move(state, message)
        if found.options.get("ready", str(ready).lower()) == "true":
            self._register()
        await self._machine.cleared(fault)

    def _broken(self) -> bool:
        return any(self._machine.struck(fault) for fault in FAULTS)

    def _register(self) -> None:
        if self._registration is None:
            self._registration = asyncio.get_running_loop().create_task(self._keep_registered())

    async def _unregister(self) -> None:
        if self._registration is not None:
            self._registration.cancel()
            await asyncio.wait([self._registration])
            self._registration = None
        if self.node_name is not None:
            name, self.node_name = self.node_name, None
            await self._machine.membership.kubernetes.stop_kubelet(name)

    async def _keep_registered(self) -> None:
        machine, faults = self._machine, self._machine.around.faults
        await machine.membership.kubernetes.ready.wait()
        await machine.cleared("worker-never-registers")
        while True:
            wrong = machine.struck("wrong-node-name")
            name = machine.generated_name if wrong else machine.name
            await self._announce(name)
            await faults.until(self._renamed(wrong))
            self.node_name = None
            await machine.membership.kubernetes.stop_kubelet(name)

    def _renamed(self, wrong: bool) -> Callable[[], bool]:
        return lambda: self._machine.struck("wrong-node-name") != wrong

    async def _announce(self, name: str) -> None:
        """A kubelet tries again until the API server takes its Node."""
        while self.node_name is None:
            try:
                await self._machine.membership.kubernetes.start_kubelet(self._node(name))
                self.node_name = name
            except Exception:
                _log.exception("%s cannot register", name)
                await asyncio.sleep(RETRY_SECONDS)
        self._machine.refresh()

    def _node(self, name: str) -> Node:
        machine = self._machine
        config = machine.config
        if config is None:
            raise LookupError("a machine without a config has no kubelet")
        return Node(
            name=name,
            address=machine.address,
            role=config.role,
            vmid=machine.boot.vmid,
            config=config.main,
            documents=config.documents,
            cores=machine.boot.cores,
            memory=machine.boot.memory,
        )
