"""One virtual machine: its configuration, what waits for the next start, and whether it runs."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from lab.proxmox import property_string
from lab.proxmox.drive import Drive, drive
from lab.proxmox.errors import OperationError
from lab.proxmox.vm_options import DRIVE, split_list, typed

LOCK_SECONDS = 10.0  # what PVE waits for a configuration's lock
_AGENT_KEY = "enabled"


@dataclass(kw_only=True)
class VirtualMachine:
    vmid: int
    node: str
    config: dict[str, str] = field(default_factory=dict)
    pending: dict[str, str | None] = field(default_factory=dict)
    """Waits for the next start; None deletes."""
    running: bool = False
    started: float = 0.0
    pid: int | None = None
    lock: str | None = None
    mutex: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)

    @property
    def name(self) -> str:
        return self.config.get("name", f"VM {self.vmid}")

    @property
    def template(self) -> bool:
        return self.config.get("template") == "1"

    @property
    def uptime(self) -> int:
        return int(time.monotonic() - self.started) if self.running else 0

    @property
    def memory(self) -> int:
        """In MiB; 512 is what Proxmox gives when nothing is said."""
        return int(property_string.parse(self.config.get("memory", "512"), "current", "memory")["current"])

    @property
    def cores(self) -> int:
        return int(self.config.get("cores", 1)) * int(self.config.get("sockets", 1))

    @property
    def agent_enabled(self) -> bool:
        agent = property_string.parse(self.config.get("agent", "0"), _AGENT_KEY, "agent")
        return bool(property_string.boolean(agent.get(_AGENT_KEY, "0")))

    def drives(self) -> dict[str, Drive]:
        return {option: drive(option, value) for option, value in sorted(self.config.items()) if DRIVE.match(option)}

    def boot_order(self) -> list[str]:
        boot = property_string.parse(self.config.get("boot", ""), "legacy", "boot")
        return split_list(boot.get("order", ""))

    def merged(self) -> dict[str, str]:
        """The configuration as it will be after the next start."""
        merged: dict[str, str | None] = {**self.config, **self.pending}
        return {option: value for option, value in merged.items() if value is not None}

    def apply_pending(self) -> None:
        self.config = self.merged()
        self.pending.clear()

    def read(self, *, current: bool) -> dict[str, Any]:
        """What GET config answers."""
        options = dict(sorted((self.config if current else self.merged()).items()))
        digest = hashlib.sha1(json.dumps(options).encode(), usedforsecurity=False).hexdigest()
        answer: dict[str, Any] = {option: typed(option, value) for option, value in options.items()}
        return answer | {"digest": digest} | ({"lock": self.lock} if self.lock else {})

    def check_lock(self) -> None:
        if self.lock:
            raise OperationError(f"VM is locked ({self.lock})")

    def check_protection(self, action: str) -> None:
        if self.config.get("protection") == "1":
            raise OperationError(f"{action} - protection mode enabled")

    @asynccontextmanager
    async def locked(self, seconds: float = LOCK_SECONDS) -> AsyncIterator[None]:
        """Exclusive use of the configuration, as every change takes it."""
        try:
            await asyncio.wait_for(self.mutex.acquire(), seconds)
        except TimeoutError:
            message = f"can't lock file '/var/lock/qemu-server/lock-{self.vmid}.conf' - got timeout"
            raise OperationError(message) from None
        try:
            yield
        finally:
            self.mutex.release()
