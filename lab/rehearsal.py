"""A rehearsal: preview, up and a second preview of one stack, and the timeline of what its gates waited for."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from lab import report
from lab.control import ControlClient
from lab.engine import Engine, Event, Finished
from lab.fault_plan import gate_names
from lab.narrator import Narrator
from lab.report import Report
from lab.request_log import RequestLog

STEPS = {
    "preview": ("preview", "--suppress-outputs"),
    "up": ("up", "--yes", "--skip-preview", "--suppress-outputs"),
    "second-preview": ("preview", "--expect-no-changes", "--suppress-outputs"),
}
TITLES = {
    "preview": "preview: what the program would do",
    "up": "up: from nothing to a healthy cluster",
    "second-preview": "second preview: nothing left to do",
}


@dataclass(kw_only=True)
class Rehearsal:
    engine: Engine
    narrator: Narrator
    programs: list[dict[str, str]]
    pace: float = 0.0
    until: str | None = None
    """The gate or probe after which the engine is stopped."""
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    finished: list[Finished] = field(default_factory=list)
    stopped: bool = False

    def perform(self) -> Report:
        """Run the steps in order, up to the first that fails, and write the report of it."""
        self.engine.prepare()
        for step in STEPS:
            if self._failed(self._perform(step)) or self.stopped:
                break
        result = self._report()
        self._tell(result)
        return result

    def _perform(self, step: str) -> Finished:
        with self.narrator.step(f"{self.engine.stack}: {TITLES[step]}") as outcome:
            done = self.engine.operate(step, *STEPS[step], watch=self._watcher(step))
            outcome.failed = self._failed(done)
        self.finished.append(done)
        return done

    def _watcher(self, step: str) -> Callable[[Event], bool]:
        def watch(event: Event) -> bool:
            if what := _under_way(event):
                self.narrator.doing(f"{self.engine.stack} {step}: {what}")
            names = gate_names(event) if step == "up" else []
            if names and not self.stopped:
                self.narrator.say(f"  ✓ {names[0]} {names[-1]}")
            reached = self.until is not None and self.until.lower() in [name.lower() for name in names]
            first, self.stopped = reached and not self.stopped, self.stopped or reached
            return first

        return watch

    def _failed(self, done: Finished) -> bool:
        return done.code != 0 and not self.stopped

    def _report(self) -> Report:
        failed = next((done for done in self.finished if self._failed(done)), None)
        run = self.engine.run_directory
        control = ControlClient(run)
        seen = control.status()
        result = Report(
            stack=self.engine.stack,
            pace=self.pace,
            started=self.started.isoformat(timespec="seconds"),
            success=failed is None,
            failure=f"{failed.step} ended with {failed.code}" if failed else None,
            stopped_after=self.until if self.stopped else None,
            steps=report.steps(self.finished, RequestLog(run.requests).entries()),
            gates=report.gates(self.engine.export()),
            programs=self.programs,
            faults=control.faults(),
            not_shown=[*report.NOT_SHOWN, *seen["not_shown"], *seen["skews"]],
            files={"run": str(run.root), "logs": str(run.logs), "requests": str(run.requests), "state": str(run.state)},
        )
        path = run.root / f"report-{self.engine.stack}.json"
        path.write_text(json.dumps(result.document(), indent=2) + "\n", encoding="utf-8")
        return result

    def _tell(self, result: Report) -> None:
        if failed := next((done for done in self.finished if self._failed(done)), None):
            self.narrator.say(failed.tail())
        tell(result, self.narrator)


def tell(result: Report, narrator: Narrator) -> None:
    """The timeline and where to look closer."""
    rows = [gate.row() for gate in result.gates]
    rows += [("engine", "", str(step["step"]), f"{step['seconds']:.1f}") for step in result.steps]
    narrator.table(f"{result.stack}: timeline", ("stage", "gate", "waited for", "seconds"), rows)
    narrator.say(f"logs {result.files['logs']}  ·  requests {result.files['requests']}")
    if result.failure:
        narrator.fail(f"{result.stack}: failed: {result.failure}")
    elif result.stopped_after:
        narrator.say(f"{result.stack}: stopped after {result.stopped_after}, as asked")
    else:
        narrator.say(f"{result.stack}: healthy, and nothing left to do")


def _under_way(event: Event) -> str | None:
    """The resource an engine event says is being worked on."""
    metadata: dict[str, Any] = event.get("resourcePreEvent", {}).get("metadata", {})
    if metadata.get("op", "same") == "same":
        return None
    return f"{metadata['op']} {str(metadata['urn']).rpartition('::')[2]}"
