"""One thing the analyser has to say about a tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["failure", "warning"]


@dataclass(frozen=True, kw_only=True, order=True)
class Finding:
    level: Level
    rule: str
    where: str
    message: str
    fix: str = ""

    def __str__(self) -> str:
        advice = f"\n      → {self.fix}" if self.fix else ""
        return f"{self.level.upper():8} {self.where}: {self.message} [{self.rule}]{advice}"
