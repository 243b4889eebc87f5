"""What a person sees while programs are fetched and built."""

from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn


class Reporter(Protocol):
    """Is told which program is worked on, how far it is and what is left."""

    def begin(self, program: str, doing: str, left: int) -> None:
        """A program is begun; `left` others wait."""

    def total(self, packages: int) -> None:
        """So many packages are to be compiled for it."""

    def step(self, doing: str) -> None:
        """One package more."""

    def made(self, what: str, how: str) -> None:
        """A directory of the cache was made."""

    def finish(self) -> None:
        """One program more is there."""


class Quiet:
    """Says nothing."""

    def begin(self, program: str, doing: str, left: int) -> None:
        """Say nothing."""

    def total(self, packages: int) -> None:
        """Say nothing."""

    def step(self, doing: str) -> None:
        """Say nothing."""

    def made(self, what: str, how: str) -> None:
        """Say nothing."""

    def finish(self) -> None:
        """Say nothing."""


class Bars:
    """A bar over the programs and one over the packages of the program being built."""

    def __init__(self, console: Console, programs: int) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self.progress = Progress(*columns, TextColumn("[dim]{task.fields[doing]}"), console=console)
        self._programs = self.progress.add_task("programs", total=programs, doing="")
        self._packages: TaskID | None = None

    def begin(self, program: str, doing: str, left: int) -> None:
        """Show the program and how many wait behind it."""
        self._drop()
        self.progress.update(self._programs, doing=f"{program}; then {left} more" if left else program)
        self._packages = self.progress.add_task(f"  {program}", total=None, doing=doing)

    def total(self, packages: int) -> None:
        """Show how many packages are to be compiled."""
        if self._packages is not None:
            self.progress.update(self._packages, total=packages)

    def step(self, doing: str) -> None:
        """Move the inner bar."""
        if self._packages is not None:
            self.progress.update(self._packages, advance=1, doing=doing)

    def made(self, what: str, how: str) -> None:
        """Leave a line."""
        self._drop()
        self.progress.console.print(f"{what}: {how}")

    def finish(self) -> None:
        """Move the outer bar."""
        self.progress.update(self._programs, advance=1, doing="")

    def _drop(self) -> None:
        if self._packages is not None:
            self.progress.remove_task(self._packages)
        self._packages = None
