"""The faults that are switched on right now, asked by every emulator at the point where each would strike."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Fault:
    name: str
    node: str | None = None
    """The node (or host, or object) it strikes; None strikes all."""
    until: float | None = None
    """When it goes away by itself, in the monotonic clock's seconds."""
    options: dict[str, str] = field(default_factory=dict)

    def strikes(self, node: str | None, now: float) -> bool:
        expired = self.until is not None and now >= self.until
        return not expired and (self.node is None or node is None or self.node == node)


class Faults:
    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._changed = asyncio.Event()

    def add(self, fault: Fault) -> None:
        self._faults.append(fault)
        self._announce()

    def remove(self, name: str, node: str | None = None) -> int:
        """Switch off every fault of that name (on that node, if one is given); how many there were."""
        kept = [fault for fault in self._faults if fault.name != name or (node is not None and fault.node != node)]
        removed = len(self._faults) - len(kept)
        self._faults = kept
        self._announce()
        return removed

    def active(self, name: str, node: str | None = None) -> Fault | None:
        """The fault of that name that strikes this node now, or None."""
        now = time.monotonic()
        return next((fault for fault in self._faults if fault.name == name and fault.strikes(node, now)), None)

    def all(self) -> list[Fault]:
        now = time.monotonic()
        return [fault for fault in self._faults if fault.until is None or now < fault.until]

    async def changed(self, timeout: float) -> bool:
        """Wait for a fault to be added or removed; False when none was in that time (one may have expired)."""
        try:
            await asyncio.wait_for(self._changed.wait(), timeout)
        except TimeoutError:
            return False
        return True

    async def cleared(self, name: str, node: str | None = None, *, poll: float = 0.25) -> None:
        """Wait until the fault no longer strikes this node; emulators block here instead of lying."""
        while self.active(name, node):
            changed = self._changed
            try:
                await asyncio.wait_for(changed.wait(), poll)
            except TimeoutError:
                continue

    def _announce(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
