"""What came of one fault's trial, as it is kept in the run directory."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

FILE = "faults.json"


@dataclass(kw_only=True)
class Result:
    fault: str
    trial: str
    gate: str
    """The one that has to catch it."""
    node: str | None
    lab: str
    """How big, and in which state the cluster was."""
    finished: str
    caught_at: str = "nowhere"
    resource: str = ""
    urn: str = ""
    message: str = ""
    complaints: list[str] = field(default_factory=list)
    """What was not as it must be."""
    transient_waited: float | None = None
    """Seconds its gate waited out a form of it shorter than the deadline; None where that was not run."""
    passed_later: bool = False
    converged: bool | None = None
    """Whether the cluster became healthy after it; None when the run ended before that could be seen."""

    @property
    def first_line(self) -> str:
        return next((line.strip() for line in self.message.splitlines() if line.strip()), "")

    @property
    def good(self) -> bool:
        return self.converged is True and not self.complaints


def write(results: Iterable[Result], directory: Path) -> None:
    text = json.dumps([asdict(result) for result in results], indent=2)
    (directory / FILE).write_text(text + "\n", encoding="utf-8")


def read(path: Path) -> list[Result]:
    return [Result(**document) for document in json.loads(path.read_text(encoding="utf-8"))]
