"""The waiting loop: look, wait for a change or a while, look again, until healthy, hopeless or out of time."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from gates.session import Session
from gates.verdict import Failed, Finding, Healthy, Verdict, Waiting

T = TypeVar("T")

FIRST_PAUSE = 0.2
PROGRESS_EVERY = 3.0
UNANSWERED = Waiting(findings=(Finding(observed="nothing has answered yet"),))
UNCONFIRMED = Waiting(findings=(Finding(observed="healthy once, not yet confirmed by a second look"),))


class Clock(Protocol):
    def now(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    def now(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@dataclass(frozen=True, kw_only=True)
class Progress:
    """What a waiting gate says every few seconds."""

    waiting_for: str
    done: int
    total: int
    left: float


OnProgress = Callable[[Progress], Awaitable[None]]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The last verdict, and how long each of its findings has stood."""

    verdict: Verdict
    waited: float
    deadline: float
    ages: dict[Finding, float] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def healthy(self) -> bool:
        return isinstance(self.verdict, Healthy)


@dataclass(kw_only=True)
class Wait:
    """One wait on one session."""

    session: Session
    deadline: float
    on_progress: OnProgress
    clock: Clock = field(default_factory=SystemClock)
    _verdict: Verdict = UNANSWERED
    _since: dict[tuple[str, str], float] = field(default_factory=dict)
    _started: float = 0.0

    async def run(self) -> Outcome:
        self._started = self.clock.now()
        await self._with_progress(self._until_over())
        now = self.clock.now()
        extra = {} if isinstance(self._verdict, Healthy) else await self._evidence()
        return Outcome(
            verdict=self._verdict,
            waited=now - self._started,
            deadline=self.deadline,
            ages={finding: now - self._since.get(_key(finding), now) for finding in _findings(self._verdict)},
            extra=extra,
        )

    @property
    def left(self) -> float:
        return self._started + self.deadline - self.clock.now()

    async def _until_over(self) -> None:
        passes, pause = 0, FIRST_PAUSE
        while True:
            verdict = await self._before_deadline(self.session.look())
            if verdict is None:
                return
            passes = passes + 1 if isinstance(verdict, Healthy) else 0
            self._note(UNCONFIRMED if 0 < passes < self.session.passes else verdict)
            if isinstance(self._verdict, Healthy | Failed) or self.left <= 0:
                return
            pause = FIRST_PAUSE if passes else min(pause * 1.5, self.session.longest_pause)
            await self._pause(self.session.apart if passes else pause, watch=not passes)

    def _note(self, verdict: Verdict) -> None:
        """A finding keeps the time it was first seen for as long as it is seen."""
        now = self.clock.now()
        self._verdict = verdict
        found = {_key(finding) for finding in _findings(verdict)}
        self._since = {key: self._since.get(key, now) for key in found}

    async def _pause(self, seconds: float, *, watch: bool) -> None:
        """Until something changes, or for some seconds; never past the deadline."""
        seconds = max(0.0, min(seconds, self.left))
        waits = [self.clock.sleep(seconds)] + ([self.session.changed()] if watch else [])
        await _first(*waits)

    async def _before_deadline(self, work: Coroutine[Any, Any, T]) -> T | None:
        """The result, or None when the deadline comes first."""
        task = asyncio.ensure_future(work)
        await _first(_joined(task), self.clock.sleep(max(self.left, 0.0)))
        if task.done():
            return task.result()
        await _cancel(task)
        return None

    async def _with_progress(self, work: Coroutine[Any, Any, None]) -> None:
        """Run to the end, unless telling about it fails: then nobody is left to wait for."""
        main, ticker = asyncio.ensure_future(work), asyncio.ensure_future(self._tell())
        try:
            await asyncio.wait({main, ticker}, return_when=asyncio.FIRST_COMPLETED)
            (main if main.done() else ticker).result()
        finally:
            await _cancel(main)
            await _cancel(ticker)

    async def _tell(self) -> None:
        while True:
            await self.clock.sleep(PROGRESS_EVERY)
            findings = _findings(self._verdict)
            done, total = (self._verdict.done, self._verdict.total) if isinstance(self._verdict, Waiting) else (0, 0)
            text = findings[0].brief if findings else "the last look"
            more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
            left = max(0.0, self.left)
            await self.on_progress(Progress(waiting_for=text + more, done=done, total=total, left=left))

    async def _evidence(self) -> dict[str, Any]:
        # A bundle is a courtesy: what cannot be read any more must not hide the finding.
        with contextlib.suppress(Exception):
            async with asyncio.timeout(15):
                return await self.session.evidence()
        return {}


def _findings(verdict: Verdict) -> tuple[Finding, ...]:
    return () if isinstance(verdict, Healthy) else verdict.findings


def _key(finding: Finding) -> tuple[str, str]:
    return finding.subject, finding.observed


async def _joined(task: asyncio.Future[Any]) -> None:
    await asyncio.wait({task})


async def _first(*waits: Coroutine[Any, Any, None]) -> None:
    """Return when the first is over; the others are cancelled."""
    tasks = {asyncio.ensure_future(wait) for wait in waits}
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            await _cancel(task)


async def _cancel(task: asyncio.Future[Any]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError, Exception):
        await task
