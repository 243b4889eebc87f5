"""Every fault the lab can imitate: what it stands for, where it was seen, and the gate that must catch it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Entry:
    imitates: str
    seen: str
    gate: str
    """The gate whose message an operator must get."""


CATALOGUE: dict[str, Entry] = {}
