"""From an empty lab to a healthy cluster and on, with a fault in the way of every step."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import yaml

from lab import environment, fault_evidence, fault_result
from lab.control import ControlClient
from lab.engine import Engine, Event
from lab.fault_evidence import Deed, Stop
from lab.fault_plan import FaultRequest, new_events
from lab.fault_result import Result
from lab.fault_table import BUILDING, LIVING, Trial
from lab.narrator import Narrator
from lab.run_directory import RunDirectory

SHORT_FORM = 3.0
"""Seconds a fault goes on after its gate has begun to wait, in its transient form."""
UP = ("up", "--yes", "--skip-preview", "--suppress-outputs")


@dataclass(frozen=True, kw_only=True)
class Attempt:
    trial: Trial
    deed: Deed
    result: Result


@dataclass(kw_only=True)
class Walk:
    """Every fault stays until the next run has met it for a while, so that run shows its transient form as well."""

    engine: Engine
    narrator: Narrator
    nodes: Mapping[str, Mapping[str, Any]]
    attempts: list[Attempt] = field(default_factory=list)
    _lasting: Trial | None = None
    _calls: int = 0

    @property
    def run(self) -> RunDirectory:
        return self.engine.run_directory

    @property
    def results(self) -> list[Result]:
        return [attempt.result for attempt in self.attempts]

    def perform(self, growing: Sequence[Trial], living: Sequence[Trial]) -> list[Result]:
        for trial in growing:
            self._try(trial, BUILDING, "growing")
        healthy = self._finish("healthy", BUILDING)
        self._judge(self.attempts, healthy=healthy)
        if healthy and living:
            for trial in living:
                self._try(trial, LIVING, "living")
            healthy = self._finish("healthy-again", LIVING)
            self._judge(self.attempts[len(growing) :], healthy=healthy)
        return self.results

    def _try(self, trial: Trial, deadlines: Mapping[str, int], state: str) -> None:
        request = FaultRequest(name=trial.fault, node=trial.node, options=trial.options)
        ControlClient(self.run).add_fault(request)
        deed = self._up(f"{len(self.attempts) + 1:02}-{trial.name}", deadlines)
        self._end_fault()
        result = self._result(trial, deed, state)
        self.attempts.append(Attempt(trial=trial, deed=deed, result=result))
        self._lasting = trial
        if not trial.passing or trial.resource or result.caught_at != trial.gate:
            self._end_fault()
        fault_result.write(self.results, self.run.root)
        self.narrator.say(f"  {trial.gate} → {result.caught_at}: {result.first_line[:110]} {result.complaints or ''}")

    def _finish(self, step: str, deadlines: Mapping[str, int]) -> bool:
        """Without a new fault: what strikes still goes away and must leave a healthy cluster behind."""
        deed = self._up(step, deadlines)
        self._end_fault()
        self.narrator.say(f"  {step}: {[stop.headline for stop in deed.stops] or 'green'}")
        return not deed.stops

    def _up(self, step: str, deadlines: Mapping[str, int]) -> Deed:
        self._prove_anew(deadlines)
        with self.narrator.step(step):
            done = self.engine.operate(step, *UP, watch=self._watcher())
        events = self.run.events / f"{self.engine.stack}-{step}.jsonl"
        deed = fault_evidence.read(new_events(events, {}) if events.exists() else [])
        if done.code != 0 and not deed.stops:
            deed.stops.append(Stop(urn="", message=done.tail()))
        self._note_passed(deed)
        return deed

    def _prove_anew(self, deadlines: Mapping[str, int]) -> None:
        """A changed stack file makes every gate ask again."""
        self._calls += 1
        path = self.run.project / f"Pulumi.{self.engine.stack}.yaml"
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        document["config"]["groundwork:cluster"]["deadlines"] = {**deadlines, "G19": 600 + self._calls}
        path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")

    def _watcher(self) -> Callable[[Event], bool]:
        """Ends the fault before a while after its gate has begun to wait."""
        lasting = self._lasting
        urn = self.results[-1].urn if lasting else ""

        def watch(event: Event) -> bool:
            nonlocal urn
            if urn and event.get("resourcePreEvent", {}).get("metadata", {}).get("urn") == urn:
                urn = ""
                threading.Timer(SHORT_FORM, self._remove, [lasting]).start()
            return False

        return watch

    def _end_fault(self) -> None:
        self._remove(self._lasting)
        self._lasting = None

    def _remove(self, trial: Trial | None) -> None:
        if trial:
            ControlClient(self.run).remove_fault(trial.fault, trial.node)

    def _note_passed(self, deed: Deed) -> None:
        for result in self.results:
            result.passed_later = result.passed_later or result.urn in deed.passed or result.urn in deed.touched
        if self._lasting and self.attempts:
            last = self.results[-1]
            last.transient_waited = deed.passed.get(last.urn)

    def _result(self, trial: Trial, deed: Deed, state: str) -> Result:
        result = Result(
            fault=trial.fault,
            trial=trial.name,
            gate=trial.gate,
            node=trial.node,
            lab=f"{len(self.nodes)} nodes, {state}",
            finished=datetime.now(UTC).isoformat(timespec="seconds"),
            complaints=["the run did not fail"],
        )
        if deed.stops:
            first = deed.stops[0]
            result.caught_at = ", ".join(dict.fromkeys(stop.gate for stop in deed.stops))
            result.resource, result.urn, result.message = first.name, first.urn, first.message
            result.complaints = [*self._complaints(trial, deed), *self._leaks(deed)]
        return result

    def _complaints(self, trial: Trial, deed: Deed) -> list[str]:
        if trial.resource:
            strangers = [s.name for s in deed.stops if s.gate != "engine" or trial.resource not in s.name]
            return [f"{name} failed as well" for name in strangers]
        strangers = [f"{stop.name} ({stop.gate}) failed" for stop in deed.stops if stop.gate != trial.gate]
        node = self.nodes.get(trial.about or "")
        return [*strangers, *fault_evidence.omissions(deed.stops[0], node, trial, self.run.project)]

    def _leaks(self, deed: Deed) -> list[str]:
        bundles = [path.read_text(errors="replace") for path in (self.run.project / ".diagnostics").glob("*")]
        tokens = environment.read_credentials(self.run).by_key().values()
        text = "\n".join([*(stop.message for stop in deed.stops), *bundles])
        return fault_evidence.leaks(text, [token.partition("=")[2] or token for token in tokens])

    def _judge(self, attempts: Sequence[Attempt], *, healthy: bool) -> None:
        """What only a complete state can tell: what lies behind each gate."""
        state = self.engine.export()
        for attempt in attempts:
            result = attempt.result
            result.converged = healthy and result.passed_later
            early = fault_evidence.behind(result.urn, state) & set(attempt.deed.touched) if healthy else set()
            if early:
                names = ", ".join(sorted(urn.rpartition("::")[2] for urn in early))
                result.complaints.append(f"behind the gate and yet made: {names}")
        fault_result.write(self.results, self.run.root)
