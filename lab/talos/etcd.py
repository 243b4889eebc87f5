"""A control plane's etcd: Preparing until it is bootstrapped or may join, then a member as long as it lives."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from lab.talos.service import Service, State

if TYPE_CHECKING:
    from lab.talos.machine import Machine

_log = logging.getLogger(__name__)

NO_QUORUM = "context deadline exceeded"
LEARNER = "etcdserver: rpc not supported for learner"


class Etcd:
    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._requested = asyncio.Event()
        self._stopped = asyncio.Event()

    def request_bootstrap(self) -> None:
        self._machine.disk.etcd_data = True
        self._requested.set()

    def stop(self) -> None:
        """It left the cluster for good."""
        self._stopped.set()

    @property
    def running(self) -> bool:
        return self._machine.state_of("etcd") is State.RUNNING

    @property
    def healthy(self) -> bool:
        if self._machine.around.faults.active("etcd-quorum-lost", self._machine.name):
            return False
        return self._machine.membership.leader is not None

    @property
    def held_vip(self) -> str | None:
        """The shared address, while this control plane is the one that has it: the leader, as it happens."""
        machine = self._machine
        if machine.config is None or not machine.config.is_control_plane or not self.running:
            return None
        leader = machine.membership.leader
        return machine.config.vip(machine.boot.mac) if leader and leader.name == machine.name else None

    async def run(self) -> None:
        machine = self._machine
        service = machine.services.add("etcd")
        self._requested.clear()
        self._stopped.clear()
        await self._prepare(service)
        try:
            await self._become_member(service)
        except Exception as error:
            _log.exception("etcd of %s does not start", machine.name)
            service.move(State.FAILED, f"Failed to run: {error}")
            return
        name = machine.name
        try:
            machine.membership.set_alive(name, alive=True)
            service.start(machine.services.next_pid())
            await self._serve(name)
            await self._stay_healthy(service)
        finally:
            machine.membership.set_alive(name, alive=False)
            await machine.membership.kubernetes.leave(name)
        service.move(State.FINISHED, "Service finished successfully")

    async def _prepare(self, service: Service) -> None:
        machine = self._machine
        service.move(State.STARTING, "Starting service")
        if not machine.time_synced:
            service.move(State.WAITING, "Waiting for time sync")
            await machine.around.faults.until(lambda: machine.time_synced)
        service.move(State.PREPARING, "Running pre state")

    async def _become_member(self, service: Service) -> None:
        machine = self._machine
        if machine.disk.etcd_data and machine.name in machine.membership.members:
            return
        bootstrapped = machine.membership.bootstrapped
        await machine.around.faults.until_any(lambda: False, self._requested, bootstrapped)
        if self._requested.is_set():
            await self._bootstrap(service)
        else:
            await self._join(service)

    async def _bootstrap(self, service: Service) -> None:
        machine = self._machine
        service.move(State.FINISHED, "Bootstrap requested")
        service.move(State.STARTING, "Starting service")
        service.move(State.PREPARING, "Running pre state")
        await machine.around.pace.wait("etcd")
        if machine.config is not None:
            await machine.membership.kubernetes.bootstrap(machine.name, machine.address, machine.config.main)
        machine.membership.admit(machine.name, machine.address, learner=False)
        machine.membership.bootstrapped.set()

    async def _join(self, service: Service) -> None:
        machine, faults = self._machine, self._machine.around.faults
        await machine.cleared("etcd-never-joins")
        async with machine.membership.joining:
            await faults.until(lambda: self.healthy)
            machine.disk.etcd_data = True
            machine.membership.admit(machine.name, machine.address, learner=True)
            await machine.around.pace.wait("etcd")
            if machine.struck("etcd-learner-stays"):
                service.start(machine.services.next_pid())
                service.check(healthy=False, message=LEARNER)
                await machine.cleared("etcd-learner-stays")
            machine.membership.promote(machine.name)

    async def _serve(self, name: str) -> None:
        """The API server of this control plane answers from here on, and the VIP has one holder more."""
        machine = self._machine
        await machine.membership.kubernetes.join(name, machine.address)
        vip = machine.config.vip(machine.boot.mac) if machine.config else None
        if vip:
            await machine.membership.kubernetes.claim_vip(vip)
        machine.refresh()

    async def _stay_healthy(self, service: Service) -> None:
        while not self._stopped.is_set():
            healthy = self.healthy
            service.check(healthy=healthy, message="" if healthy else NO_QUORUM)
            await self._machine.around.faults.until_any(self._differs(healthy), self._stopped)

    def _differs(self, healthy: bool) -> Callable[[], bool]:
        return lambda: self.healthy != healthy
