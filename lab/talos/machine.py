"""One machine: who it is, what it keeps, and what it shows of itself."""

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
from lab.talos import publisher
from lab.talos.applied_config import AppliedConfig
from lab.talos.disk import Disk, image_version
from lab.talos.etcd import Etcd
from lab.talos.event_log import EventLog
from lab.talos.kubelet import Kubelet
from lab.talos.life import ANSWER_SECONDS, Life
from lab.talos.listener import Listener
from lab.talos.membership import Membership
from lab.talos.router import Router
from lab.talos.service import Service, State
from lab.talos.services import ServiceBoard
from lab.talos.store import Store
from lab.talos.surroundings import Surroundings

_log = logging.getLogger(__name__)

KERNEL_LINES = 500


class Machine:
    def __init__(self, around: Surroundings, boot: Boot) -> None:
        self.around = around
        self.boot = boot
        self.disk = Disk()
        self.config: AppliedConfig | None = None
        """What is in effect; None in maintenance mode."""
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
        self.life = Life(self)
        self._living: asyncio.Task[None] | None = None

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

    # How it is.

    @property
    def on(self) -> bool:
        return self._living is not None and not self._living.done()

    @property
    def in_maintenance(self) -> bool:
        return self.stage == "maintenance"

    @property
    def bootstrap_allowed(self) -> bool:
        """From when Talos starts its services on."""
        return self.config is not None and self.services.get("cri") is not None

    @property
    def time_synced(self) -> bool:
        return bool(self.config and self.config.time_sync_disabled) or not self.struck("time-not-in-sync")

    def state_of(self, service: str) -> State | None:
        found = self.services.get(service)
        return found.state if found else None

    def struck(self, fault: str) -> bool:
        return self.around.faults.active(fault, self.name) is not None

    async def cleared(self, fault: str) -> None:
        await self.around.faults.until(lambda: not self.struck(fault))

    # Power.

    async def switch_on(self, boot: Boot) -> None:
        if self.on:
            return
        self.boot = boot
        self.boot_id = str(uuid.uuid4())
        self.boot_time = int(time.time())
        self.life = Life(self)
        self._living = asyncio.get_running_loop().create_task(self.life.run())
        self._living.add_done_callback(_report)

    async def switch_off(self) -> None:
        if self._living is not None:
            self._living.cancel()
            await asyncio.wait([self._living])
            self._living = None

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

    def go_dark(self) -> None:
        self.agent = self.booted = False
        self.config = None
        self.stage = "unknown"
        self.store.clear()
        self.services.clear()

    # What it shows.

    def print(self, line: str) -> None:
        self.kernel_log.append(f"[talos] {line}\n")
        with (self.around.directory / f"{self.boot.name}.log").open("a") as file:
            file.write(f"{datetime.now(UTC).isoformat(timespec='milliseconds')} {line}\n")

    def enter(self, stage: str) -> None:
        if stage != self.stage:
            self.print(f"machine stage: {stage}")
        self.stage = stage
        publisher.publish_facts(self)
        self.refresh()

    def refresh(self) -> None:
        """Look again at everything that makes a machine ready."""
        if self.stage == "booting" and self.kubelet.loaded and self.services.all_up:
            self.stage, self.booted = "running", True
            self.print("machine stage: running")
        publisher.publish_status(self)

    def _service_changed(self, service: Service) -> None:
        self.print(f"service[{service.id}]({service.state.value}): {service.last}")
        publisher.publish_service(self, service)
        self.events.service(service)
        self.refresh()


def _report(life: asyncio.Task[None]) -> None:
    if not life.cancelled() and (error := life.exception()):
        _log.error("a machine broke down", exc_info=error)
