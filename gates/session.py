"""What the waiting loop needs of a probe that has been opened on one target."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from typing import Any, TypeVar

from gates.verdict import Verdict

T = TypeVar("T")

ATTEMPT = 10.0
"""Seconds that one request may take."""


class Session(ABC):
    """A probe on one target; holds its connections until it is closed."""

    passes = 1
    """Consecutive healthy looks that make a gate healthy."""
    apart = 0.1
    """Seconds between those looks."""
    longest_pause = 5.0
    """Seconds between two looks when nothing announces a change."""

    @abstractmethod
    async def look(self) -> Verdict:
        """Look once; network errors are findings, programming errors raise."""

    async def changed(self) -> None:
        """Return when another look may see something new; never returns where nothing can be watched."""
        await asyncio.Event().wait()

    async def evidence(self) -> dict[str, Any]:
        """What a diagnostics bundle should hold beside the findings."""
        return {}

    @abstractmethod
    async def close(self) -> None:
        """Give connections back."""


async def within(seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """The result, or TimeoutError.

    Not asyncio.timeout: grpclib ends its own time-outs by cancelling the task, and the two would take each other's
    cancellation for one from outside.
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=seconds)
        if task.done():
            return task.result()
        raise TimeoutError
    finally:
        task.cancel()


def pause_for(nodes: int) -> float:
    """Polling stays cheap for many nodes and quick for few: 10 ms for each, between 0.2 and 5 seconds."""
    return min(5.0, max(0.2, nodes / 100))
