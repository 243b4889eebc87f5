"""The real Pulumi engine, run inside a lab on the copy of the project."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lab import environment
from lab.event_tap import EventTap
from lab.run_directory import LabError, RunDirectory
from lab.sandbox import Sandbox

POLL = 0.05
TAIL = 60
Event = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Finished:
    """One call of the engine, after its end."""

    step: str
    code: int
    began: datetime
    seconds: float
    log: Path

    def tail(self) -> str:
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-TAIL:])


@dataclass(frozen=True, kw_only=True)
class Engine:
    sandbox: Sandbox
    stack: str

    @property
    def run_directory(self) -> RunDirectory:
        return self.sandbox.run

    def prepare(self) -> None:
        """An empty stack in the run's own file backend."""
        done = self.call("init", "stack", "init", self.stack, "--non-interactive")
        if done.code != 0:
            raise LabError(f"the engine cannot make the stack {self.stack}:\n{done.tail()}")

    def operate(
        self,
        step: str,
        *arguments: str,
        watch: Callable[[Event], bool] | None = None,
        halt: signal.Signals = signal.SIGINT,
    ) -> Finished:
        """An operation whose events are logged; the engine is sent `halt` as soon as `watch` says so."""
        run = self.run_directory
        log = run.events / f"{self.stack}-{step}.jsonl"
        with EventTap(run.temporary / f"{self.stack}-{step}.events", log) as tap:
            options = ["--stack", self.stack, "--non-interactive", "--color", "never", "--event-log", str(tap.pipe)]
            return self._run(step, [*arguments, *options], lambda process: _follow(process, tap, watch, halt))

    def call(self, step: str, *arguments: str) -> Finished:
        return self._run(step, [*arguments, "--color", "never"], lambda process: process.wait())

    def export(self, *, show_secrets: bool = False) -> dict[str, Any]:
        options = ["--show-secrets"] if show_secrets else []
        state: dict[str, Any] = json.loads(self._output("stack", "export", "--stack", self.stack, *options))
        return state

    def _output(self, *arguments: str) -> str:
        done = subprocess.run(
            self._command(list(arguments)),
            env=environment.read(self.run_directory),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise LabError(f"pulumi {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def _command(self, arguments: list[str]) -> list[str]:
        return self.sandbox.command(["pulumi", *arguments], directory=self.run_directory.project)

    def _run(self, step: str, arguments: list[str], follow: Callable[[subprocess.Popen[bytes]], int]) -> Finished:
        path = self.run_directory.logs / f"{self.stack}-{step}.log"
        began, clock = datetime.now(UTC), time.monotonic()
        with path.open("wb") as log:
            process = subprocess.Popen(
                self._command(arguments),
                env=environment.read(self.run_directory),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
            code = follow(process)
        return Finished(step=step, code=code, began=began, seconds=time.monotonic() - clock, log=path)


def _follow(
    process: subprocess.Popen[bytes], tap: EventTap, watch: Callable[[Event], bool] | None, halt: signal.Signals
) -> int:
    while True:
        code = process.poll()
        for event in tap.events(POLL):
            if watch and watch(event):
                interrupt(process, halt)
        if code is not None:
            return code


def interrupt(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Signal the engine itself, for the process that entered the namespaces passes nothing on."""
    for child in children(process.pid):
        os.kill(child, number)


def children(pid: int) -> list[int]:
    return [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/stat") if _parent(path) == pid]


def _parent(stat: Path) -> int | None:
    try:
        return int(stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1])
    except OSError:
        return None
