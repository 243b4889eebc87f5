"""What the waiting loop needs of a probe that has been opened on one target."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import Any

from gates.verdict import Verdict

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


def pause_for(nodes: int) -> float:
    """Polling stays cheap for many nodes and quick for few: 10 ms for each, between 0.2 and 5 seconds."""
    return min(5.0, max(0.2, nodes / 100))
