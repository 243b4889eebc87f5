"""What a person at the keyboard sees: a live line on a terminal, plain lines anywhere else."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.markup import escape
from rich.status import Status
from rich.table import Table

PLAIN_WIDTH = 140


@dataclass
class Outcome:
    failed: bool = False


class Narrator:
    def __init__(self, console: Console | None = None) -> None:
        self.console = console or _console()
        self._status: Status | None = None

    @contextmanager
    def step(self, title: str) -> Iterator[Outcome]:
        """Something that takes more than a moment; its outcome and seconds are said at its end."""
        outcome = Outcome()
        began = time.monotonic()
        if self.console.is_terminal:
            self._status = self.console.status(escape(title))
            self._status.start()
        else:
            self.console.print(f"{title} …", markup=False)
        try:
            yield outcome
        except BaseException:
            outcome.failed = True
            raise
        finally:
            if self._status:
                self._status.stop()
                self._status = None
            mark = "[red]✗[/]" if outcome.failed else "[green]✓[/]"
            self.console.print(f"{mark} {escape(title)} [dim]{time.monotonic() - began:.1f} s[/]")

    def doing(self, what: str) -> None:
        """What the running step is at right now; only a terminal shows it."""
        if self._status:
            self._status.update(escape(what))

    def say(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False)

    def fail(self, text: str) -> None:
        self.console.print(f"[bold red]{escape(text)}[/]", highlight=False)

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        table = Table(title=title, title_justify="left", box=None if not self.console.is_terminal else Table().box)
        for column in columns:
            table.add_column(column, justify="right" if column == "seconds" else "left", overflow="fold")
        for row in rows:
            table.add_row(*(escape(cell) for cell in row))
        self.console.print(table)


def _console() -> Console:
    return Console() if sys.stdout.isatty() else Console(width=PLAIN_WIDTH, force_terminal=False)
