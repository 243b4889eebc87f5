"""Wakes machines when faults come and go, without every machine polling for itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from lab.faults import Fault, Faults

INTERVAL = 0.1


class FaultWatch:
    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self._seen: list[Fault] = []
        self._turn = asyncio.Event()
        self._fault_turn = asyncio.Event()

    def active(self, name: str, node: str) -> Fault | None:
        return self.faults.active(name, node)

    def heal(self, name: str, node: str, remedy: str) -> None:
        """A fault can say in its options which remedy ends it, such as `heals=restart`."""
        fault = self.active(name, node)
        if fault and fault.options.get("heals") == remedy:
            self.faults.remove(name, fault.node)

    async def until(self, reached: Callable[[], bool]) -> None:
        while not reached():
            await self._turn.wait()

    async def until_any(self, reached: Callable[[], bool], *events: asyncio.Event) -> None:
        """Whichever comes first."""
        waits = [asyncio.ensure_future(wait) for wait in (self.until(reached), *(event.wait() for event in events))]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def within(self, seconds: float, reached: Callable[[], bool]) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self.until(reached)
        except TimeoutError:
            return reached()
        return True

    async def turn(self) -> None:
        """Until a fault comes or goes."""
        await self._fault_turn.wait()

    async def cleared(self, name: str, node: str) -> None:
        await self.until(lambda: not self.active(name, node))

    def wake(self) -> None:
        """Let everybody look again."""
        self._turn.set()
        self._turn = asyncio.Event()

    async def run(self) -> None:
        """A fault that came and went between two looks was seen by machines all the same."""
        while True:
            changed = await self.faults.changed(INTERVAL)
            now = self.faults.all()
            if changed or now != self._seen:
                self._seen = now
                self._fault_turn.set()
                self._fault_turn = asyncio.Event()
                self.wake()
