"""Runs a probe the way a gate does, with the patience of a test."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from gates.registry import PROBES, run
from gates.verdict import Failed, Finding, Healthy, Verdict, Waiting
from gates.wait import Outcome, Progress

T = TypeVar("T")

PATIENCE = 20.0
"""Seconds after which a test that should have seen something gives up."""


async def untold(progress: Progress) -> None:
    """Nobody listens."""


async def look(probe: str, target: Mapping[str, Any]) -> Verdict:
    """One look."""
    session = PROBES[probe].open(target)
    try:
        return await session.look()
    finally:
        await session.close()


async def findings(probe: str, target: Mapping[str, Any]) -> tuple[Finding, ...]:
    """What one look that is not healthy found, but may still mend."""
    verdict = await look(probe, target)
    assert isinstance(verdict, Waiting), verdict
    return verdict.findings


async def fatal(probe: str, target: Mapping[str, Any]) -> tuple[Finding, ...]:
    verdict = await look(probe, target)
    assert isinstance(verdict, Failed), verdict
    return verdict.findings


async def evidence(probe: str, target: Mapping[str, Any]) -> tuple[str, ...]:
    verdict = await look(probe, target)
    assert isinstance(verdict, Healthy), verdict
    return verdict.evidence


def observed(found: tuple[Finding, ...]) -> str:
    return "\n".join(each.observed for each in found)


async def noticed(probe: str, target: Mapping[str, Any], mend: Callable[[], None]) -> Outcome:
    """Wait on something unhealthy, mend it once the gate waits, and see the gate open."""
    waiting = asyncio.ensure_future(run(probe, target, PATIENCE, untold))
    await asyncio.sleep(0.3)
    assert not waiting.done(), waiting.result()
    mend()
    return await waiting


async def until(holds: Callable[[], bool]) -> None:
    """What happens in a background task has no event to wait for."""
    async with asyncio.timeout(PATIENCE):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


class FakeTime:
    """A clock whose sleepers wake in order, and at once, as soon as nothing else can run."""

    def __init__(self) -> None:
        self._now = 1000.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = 0

    def now(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._count += 1
        heapq.heappush(self._sleepers, (self._now + seconds, self._count, future))
        await future

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        task = asyncio.ensure_future(work)
        while not task.done():
            for _ in range(30):
                await asyncio.sleep(0)
            self._wake()
        return task.result()

    def _wake(self) -> None:
        while self._sleepers:
            when, _, future = heapq.heappop(self._sleepers)
            if not future.done():
                self._now = max(self._now, when)
                future.set_result(None)
                return
