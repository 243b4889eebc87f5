"""One machine: from power on through maintenance mode to a member of its cluster."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
import uuid
from collections import deque
from datetime import UTC, datetime
from ipaddress import IPv4Interface

from lab.boot import Boot
from lab.talos import publisher, tls
from lab.talos.applied_config import AppliedConfig
from lab.talos.disk import Disk, boot_problem, image_version
from lab.talos.etcd import Etcd
from lab.talos.event_log import EventLog
from lab.talos.kubelet import Kubelet
from lab.talos.listener import Listener
from lab.talos.membership import Membership
from lab.talos.pki import issue, new_authority
from lab.talos.router import Router
from lab.talos.service import Service, State
from lab.talos.services import SYSTEM, ServiceBoard
from lab.talos.store import Store
from lab.talos.surroundings import Surroundings

_log = logging.getLogger(__name__)

ANSWER_SECONDS = 0.05
"""For an answer to leave before the API it came from goes away."""
FLAP_SECONDS = 2.0
KERNEL_LINES = 500


class Machine:
    def __init__(self, around: Surroundings, boot: Boot) -> None:
        self.around = around
        self.boot = boot
        self.disk = Disk()
        self.config: AppliedConfig | None = None
        self.stage = "unknown"
        self.booted = False
        self.boot_id = ""
        self.boot_time = 0
        self.agent = False
        """Whether the guest agent answers the hypervisor."""
        self.store = Store()
        self.services = ServiceBoard(self._service_changed)
        self.events = EventLog()
        self.kernel_log: deque[str] = deque(maxlen=KERNEL_LINES)
        self.kubelet = Kubelet(self)
        self.etcd = Etcd(self)
        self.api = Router(self)
        self.listener = Listener(self.api, around.port)
        self._applied: asyncio.Future[AppliedConfig] | None = None
        self._life: asyncio.Task[None] | None = None

    # Who it is.

    @property
    def name(self) -> str:
        return self.name_with(self.config)

    def name_with(self, config: AppliedConfig | None) -> str:
        if config is None:
            return self.boot.name
        return config.hostname or self.generated_name

    @property
    def generated_name(self) -> str:
        """What Talos calls a machine whose config gives it no name."""
        digest = hashlib.sha256(self.boot.mac.encode()).hexdigest()
        return f"talos-{digest[:3]}-{digest[3:6]}"

    @property
    def version(self) -> str:
        return image_version(self.boot)

    @property
    def on(self) -> bool:
        return self._life is not None and not self._life.done()

    @property
    def in_maintenance(self) -> bool:
        return self.stage == "maintenance"

    @property
    def addresses(self) -> list[IPv4Interface]:
        """The cloud-init address stays beside what the config adds."""
        given = [self.boot.address] if self.boot.address else []
        configured = self.config.addresses(self.boot.mac) if self.config else []
        found = list(dict.fromkeys([*given, *configured]))
        if given and self.struck("double-address"):
            found.append(IPv4Interface(f"{given[0].network.broadcast_address - 1}/{given[0].network.prefixlen}"))
        return found

    @property
    def hosts(self) -> list[str]:
        return [str(address.ip) for address in self.addresses]

    @property
    def address(self) -> str:
        return self.hosts[0]

    @property
    def membership(self) -> Membership:
        if self.config is None:
            raise LookupError("a machine in maintenance mode belongs to no cluster")
        return self.around.membership(self.config.cluster_id)

    @property
    def time_synced(self) -> bool:
        return bool(self.config and self.config.time_sync_disabled) or not self.struck("time-not-in-sync")

    def struck(self, fault: str) -> bool:
        return self.around.faults.active(fault, self.name) is not None

    async def cleared(self, fault: str) -> None:
        await self.around.faults.until(lambda: not self.struck(fault))

    def print(self, line: str) -> None:
        self.kernel_log.append(f"[talos] {line}\n")
        with (self.around.directory / f"{self.boot.name}.log").open("a") as file:
            file.write(f"{datetime.now(UTC).isoformat(timespec='milliseconds')} {line}\n")

    # Power.

    async def switch_on(self, boot: Boot) -> None:
        if self.on:
            return
        self.boot = boot
        self._life = asyncio.get_running_loop().create_task(self._live())
        self._life.add_done_callback(_report)

    async def switch_off(self) -> None:
        if self._life is not None:
            self._life.cancel()
            await asyncio.wait([self._life])
            self._life = None

    async def restart(self, stage: str, *, wipe: bool = False, power: bool = True) -> None:
        """Down as the API asked for it, and up again."""
        await asyncio.sleep(ANSWER_SECONDS)
        self.enter(stage)
        await asyncio.sleep(ANSWER_SECONDS)
        await self.switch_off()
        if wipe:
            self.disk.wipe()
        if power:
            await self.switch_on(self.boot)

    # Life.

    async def _live(self) -> None:
        try:
            await self._boot()
            async with asyncio.TaskGroup() as group:
                group.create_task(self._follow_network())
                group.create_task(self._follow_faults())
                group.create_task(self._work())
        finally:
            await self.listener.close()
            self._go_dark()

    def _go_dark(self) -> None:
        self.agent = False
        self.booted = False
        self.config = None
        self.stage = "unknown"
        self.store.clear()
        self.services.clear()

    async def _boot(self) -> None:
        self.boot_id = str(uuid.uuid4())
        self.boot_time = int(time.time())
        problem = boot_problem(self.boot)
        if problem is not None:
            self.print(problem)
            await asyncio.Event().wait()
        await self.around.pace.wait("boot")
        await self.cleared("vm-does-not-boot")
        self.agent = True
        self.services.load(SYSTEM)
        self.enter("booting")

    async def _work(self) -> None:
        config = self.disk.load()
        if config is None:
            await self._be_foreign()
            config = self.disk.config = await self._maintain()
            await self.around.pace.wait("config apply")
        await self._run(config)

    async def _be_foreign(self) -> None:
        """Somebody else configured this machine before."""
        if not self.struck("foreign-ca"):
            return
        stranger = new_authority("talos")
        identity = issue(stranger, self.hosts)
        context = tls.server_context(identity.certificate, identity.key, stranger.certificate)
        await self.listener.serve(self.hosts, context)
        await self.cleared("foreign-ca")
        await self.listener.close()

    async def _maintain(self) -> AppliedConfig:
        self.enter("maintenance")
        self._applied = asyncio.get_running_loop().create_future()
        identity = issue(new_authority("talos"), self.hosts)
        await self.listener.serve(self.hosts, tls.server_context(identity.certificate, identity.key, None))
        config = await self._applied
        await asyncio.sleep(ANSWER_SECONDS)
        await self.around.faults.cleared("apply-lost", self.name_with(config))
        await self.listener.close()
        return config

    def accept(self, config: AppliedConfig) -> None:
        """A config that was applied in maintenance mode; of several the first counts."""
        if self._applied is not None and not self._applied.done():
            self._applied.set_result(config)

    async def _run(self, config: AppliedConfig) -> None:
        self.config = config
        self.membership.learn(config)
        self.enter("booting")
        await self._serve_securely()
        self.services.load(["cri"] + (["trustd"] if config.is_control_plane else []))
        async with asyncio.TaskGroup() as group:
            group.create_task(self.kubelet.run())
            if config.is_control_plane:
                group.create_task(self.etcd.run())

    async def _serve_securely(self) -> None:
        """A worker has to wait for a control plane that signs its certificate."""
        if self.config is None:
            return
        authority = self.config.authority
        if authority is None:
            authority = await asyncio.shield(self.membership.authority)
        identity = issue(authority, [*self.hosts, self.name, *self.config.cert_sans])
        context = tls.server_context(identity.certificate, identity.key, self.config.ca_certificate)
        await self.listener.serve(self.hosts, context)

    async def reconfigure(self, config: AppliedConfig) -> None:
        """A config that takes effect while the machine runs."""
        await asyncio.sleep(ANSWER_SECONDS)
        before, self.config = self.config, config
        if before is None or before.ca_certificate != config.ca_certificate or self._moved(before):
            await self._serve_securely()
        publisher.publish_facts(self)
        self.kubelet.restart()

    def _moved(self, before: AppliedConfig) -> bool:
        after = self.config.addresses(self.boot.mac) if self.config else []
        return before.addresses(self.boot.mac) != after

    # What changes around it.

    async def _follow_network(self) -> None:
        """Faults between this machine and everybody else."""
        while True:
            flapping = self.around.faults.active("talos-api-flaps", self.name)
            seconds = float(flapping.options.get("seconds", FLAP_SECONDS)) if flapping else FLAP_SECONDS
            down = flapping is not None and int(time.monotonic() / seconds) % 2 == 1
            await self.listener.hide(hidden=self.struck("wrong-vlan") or down)
            if flapping:
                await asyncio.sleep(seconds / 4)
            else:
                await self.around.faults.turn()

    async def _follow_faults(self) -> None:
        while True:
            publisher.publish_facts(self)
            self.refresh()
            await self.around.faults.turn()

    def enter(self, stage: str) -> None:
        if stage != self.stage:
            self.print(f"machine stage: {stage}")
        self.stage = stage
        publisher.publish_facts(self)
        self.refresh()

    def refresh(self) -> None:
        """Look at everything that makes a machine ready."""
        if self.stage == "booting" and self.services.all_up and self.config is not None and self.kubelet.loaded:
            self.stage, self.booted = "running", True
            self.print("machine stage: running")
        publisher.publish_status(self)

    def _service_changed(self, service: Service) -> None:
        self.print(f"service[{service.id}]({service.state.value}): {service.last}")
        publisher.publish_service(self, service)
        self.events.service(service)
        self.refresh()

    @property
    def bootstrap_allowed(self) -> bool:
        return self.config is not None and self.services.get("cri") is not None and self.agent

    def state_of(self, service: str) -> State | None:
        found = self.services.get(service)
        return found.state if found else None


def _report(life: asyncio.Task[None]) -> None:
    if not life.cancelled() and (error := life.exception()):
        _log.error("a machine broke down", exc_info=error)
