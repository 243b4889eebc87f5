"""G18: everything that could have broken while something else was being built, asked once more, side by side."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pydantic.dataclasses import dataclass

from gates.session import Session
from gates.target import STRICT, parse
from gates.verdict import Failed, Finding, Healthy, Verdict, Waiting, conclude

Opener = Callable[[str, Mapping[str, Any]], Session]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Question:
    gate: str
    probe: str
    target: dict[str, Any]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class FinalTarget:
    gates: list[Question]


class FinalSession(Session):
    """All the other sessions at once; healthy when every one of them is."""

    def __init__(self, target: Mapping[str, Any], opener: Opener) -> None:
        questions = parse(FinalTarget, target).gates
        self._sessions = [(each.gate, opener(each.probe, each.target)) for each in questions]
        self.longest_pause = min((session.longest_pause for _, session in self._sessions), default=1.0)

    async def look(self) -> Verdict:
        verdicts = await asyncio.gather(*(session.look() for _, session in self._sessions))
        named = [(gate, verdict) for (gate, _), verdict in zip(self._sessions, verdicts, strict=True)]
        fatal = [found for gate, verdict in named if isinstance(verdict, Failed) for found in _told(gate, verdict)]
        waiting = [found for gate, verdict in named if isinstance(verdict, Waiting) for found in _told(gate, verdict)]
        healthy = [(gate, verdict) for gate, verdict in named if isinstance(verdict, Healthy)]
        evidence = [f"{gate}: {line}" for gate, verdict in healthy for line in verdict.evidence]
        return conclude(waiting, evidence, done=len(healthy), total=len(named), fatal=fatal)

    async def changed(self) -> None:
        tasks = [asyncio.ensure_future(session.changed()) for _, session in self._sessions]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task

    async def evidence(self) -> dict[str, Any]:
        gathered: dict[str, Any] = {}
        for gate, session in self._sessions:
            with contextlib.suppress(Exception):
                gathered |= {f"{gate} {name}": value for name, value in (await session.evidence()).items()}
        return gathered

    async def close(self) -> None:
        await asyncio.gather(*(session.close() for _, session in self._sessions))


def _told(gate: str, verdict: Waiting | Failed) -> list[Finding]:
    return [replace(found, observed=f"{gate}: {found.observed}") for found in verdict.findings]
