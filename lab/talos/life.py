"""A machine between power on and power off: maintenance mode, then a member of its cluster."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from lab.talos import publisher, tls
from lab.talos.applied_config import AppliedConfig
from lab.talos.disk import boot_problem
from lab.talos.pki import issue, new_authority
from lab.talos.services import SYSTEM

if TYPE_CHECKING:
    from lab.talos.machine import Machine

ANSWER_SECONDS = 0.05
"""For an answer to leave before the API it came from goes away."""
FLAP_SECONDS = 2.0


class Life:
    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._applied: asyncio.Future[AppliedConfig] = asyncio.get_running_loop().create_future()

    async def run(self) -> None:
        machine = self._machine
        try:
            await self._boot()
            async with asyncio.TaskGroup() as group:
                group.create_task(self._follow_network())
                group.create_task(self._follow_faults())
                group.create_task(self._work())
        finally:
            await machine.listener.close()
            machine.go_dark()

    def accept(self, config: AppliedConfig) -> None:
        """A config that was applied in maintenance mode; of several the first counts."""
        if not self._applied.done():
            self._applied.set_result(config)

    async def reconfigure(self, config: AppliedConfig) -> None:
        """A config that takes effect while the machine runs."""
        await asyncio.sleep(ANSWER_SECONDS)
        machine, before = self._machine, self._machine.hosts
        trusted, machine.config = machine.config, config
        if trusted is None or trusted.ca_certificate != config.ca_certificate or machine.hosts != before:
            await self._serve_securely(config)
        publisher.publish_facts(machine)
        machine.kubelet.restart()

    async def _boot(self) -> None:
        machine = self._machine
        problem = boot_problem(machine.boot)
        if problem is not None:
            machine.print(problem)
            await asyncio.Event().wait()
        await machine.around.pace.wait("boot")
        await machine.cleared("vm-does-not-boot")
        machine.agent = True
        machine.services.load(SYSTEM)
        machine.enter("booting")

    async def _work(self) -> None:
        disk = self._machine.disk
        config = disk.load()
        if config is None:
            await self._be_foreign()
            config = disk.config = await self._maintain()
            await self._machine.around.pace.wait("config apply")
        await self._serve_cluster(config)

    async def _be_foreign(self) -> None:
        """Somebody else configured this machine before."""
        machine = self._machine
        if not machine.struck("foreign-ca"):
            return
        stranger = new_authority("talos")
        identity = issue(stranger, machine.hosts)
        context = tls.server_context(identity.certificate, identity.key, stranger.certificate)
        await machine.listener.serve(machine.hosts, context)
        await machine.cleared("foreign-ca")
        await machine.listener.close()

    async def _maintain(self) -> AppliedConfig:
        machine = self._machine
        machine.enter("maintenance")
        identity = issue(new_authority("talos"), machine.hosts)
        await machine.listener.serve(machine.hosts, tls.server_context(identity.certificate, identity.key, None))
        config = await self._applied
        await asyncio.sleep(ANSWER_SECONDS)
        await machine.around.faults.cleared("apply-lost", machine.name_with(config))
        await machine.listener.close()
        return config

    async def _serve_cluster(self, config: AppliedConfig) -> None:
        machine = self._machine
        machine.config = config
        machine.membership.learn(config)
        machine.enter("booting")
        await self._serve_securely(config)
        machine.services.load(["cri", "trustd"] if config.is_control_plane else ["cri"])
        for service in ["etcd", "kubelet"] if config.is_control_plane else ["kubelet"]:
            machine.services.add(service)
        async with asyncio.TaskGroup() as group:
            group.create_task(machine.kubelet.run())
            if config.is_control_plane:
                group.create_task(machine.etcd.run())

    async def _serve_securely(self, config: AppliedConfig) -> None:
        """A worker has to wait for a control plane that signs its certificate."""
        machine = self._machine
        authority = config.authority
        if authority is None:
            authority = await asyncio.shield(machine.membership.authority)
        identity = issue(authority, [*machine.hosts, machine.name, *config.cert_sans])
        context = tls.server_context(identity.certificate, identity.key, config.ca_certificate)
        await machine.listener.serve(machine.hosts, context)

    async def _follow_network(self) -> None:
        """Faults between this machine and everybody else."""
        machine, faults = self._machine, self._machine.around.faults
        while True:
            flapping = faults.active("talos-api-flaps", machine.name)
            seconds = float(flapping.options.get("seconds", FLAP_SECONDS)) if flapping else FLAP_SECONDS
            down = flapping is not None and int(time.monotonic() / seconds) % 2 == 1
            await machine.listener.hide(hidden=machine.struck("wrong-vlan") or down)
            if flapping:
                await asyncio.sleep(seconds / 4)
            else:
                await faults.turn()

    async def _follow_faults(self) -> None:
        while True:
            publisher.publish_facts(self._machine)
            self._machine.refresh()
            await self._machine.around.faults.turn()
