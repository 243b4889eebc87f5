"""Faults to come: each is switched on at once, or when the engine has passed the stage it waits for."""

from __future__ import annotations

import asyncio
import difflib
import json
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.faults import Fault, Faults

POLL = 0.1


class UnknownFaultError(Exception):
    """The catalogue has no such fault."""


@dataclass(frozen=True, kw_only=True)
class FaultRequest:
    name: str
    node: str | None = None
    seconds: float | None = None
    after: str | None = None
    """The gate (`G5`) or probe (`kube-api`) that has to be passed first."""
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> FaultRequest:
        seconds = document.get("for")
        return cls(
            name=str(document["name"]),
            node=document.get("node"),
            seconds=None if seconds is None else float(seconds),
            after=document.get("after"),
            options={str(key): str(value) for key, value in (document.get("options") or {}).items()},
        )

    def document(self) -> dict[str, Any]:
        whole = {"name": self.name, "node": self.node, "for": self.seconds, "after": self.after}
        return {key: value for key, value in whole.items() if value is not None} | {"options": dict(self.options)}


class FaultPlan:
    def __init__(self, faults: Faults, known: Collection[str]) -> None:
        self._faults = faults
        self._known = known
        self._waiting: list[FaultRequest] = []
        self.passed: list[str] = []
        """Gates and probes the engine has reported, in order."""

    def add(self, request: FaultRequest) -> None:
        if request.name not in self._known:
            near = difflib.get_close_matches(request.name, self._known, n=3)
            hint = f"; did you mean {' or '.join(near)}?" if near else "; `python -m lab fault catalogue` lists them"
            raise UnknownFaultError(f"there is no fault {request.name!r}{hint}")
        if request.after is None or request.after.lower() in self.passed:
            self._strike(request)
        else:
            self._waiting.append(request)

    def remove(self, name: str, node: str | None = None) -> int:
        kept = [r for r in self._waiting if r.name != name or (node is not None and r.node != node)]
        dropped = len(self._waiting) - len(kept)
        self._waiting = kept
        return dropped + self._faults.remove(name, node)

    def pass_stage(self, names: Collection[str]) -> None:
        """The engine has passed a stage known by these names."""
        lowered = [name.lower() for name in names]
        self.passed.extend(lowered)
        for request in [r for r in self._waiting if r.after is not None and r.after.lower() in lowered]:
            self._waiting.remove(request)
            self._strike(request)

    def listing(self) -> list[dict[str, Any]]:
        now = time.monotonic()
        striking = [
            FaultRequest(name=f.name, node=f.node, seconds=f.until and round(f.until - now, 1), options=f.options)
            for f in self._faults.all()
        ]
        return [
            *({**request.document(), "state": "striking"} for request in striking),
            *({**request.document(), "state": "waiting"} for request in self._waiting),
        ]

    def _strike(self, request: FaultRequest) -> None:
        until = None if request.seconds is None else time.monotonic() + request.seconds
        self._faults.add(Fault(name=request.name, node=request.node, until=until, options=dict(request.options)))

    async def watch(self, events: Path) -> None:
        """Follow the engine's event logs, the one that is written now and those that come later."""
        offsets: dict[Path, int] = {}
        while True:
            for names in _passed_gates(events, offsets):
                self.pass_stage(names)
            await asyncio.sleep(POLL)


def _passed_gates(folder: Path, offsets: dict[Path, int]) -> Iterator[list[str]]:
    for path in sorted(folder.glob("*.jsonl")):
        yield from filter(None, map(gate_names, new_events(path, offsets)))


def new_events(path: Path, offsets: dict[Path, int]) -> Iterator[dict[str, Any]]:
    """Whole lines that were added since the last look."""
    with path.open("rb") as file:
        file.seek(offsets.get(path, 0))
        for line in file:
            if not line.endswith(b"\n"):
                return
            offsets[path] = offsets.get(path, 0) + len(line)
            yield json.loads(line)


def gate_names(event: Mapping[str, Any]) -> list[str]:
    """The gate and probe that an engine event says have passed, or nothing."""
    outputs = event.get("resOutputsEvent", {}).get("metadata", {}).get("new", {}).get("outputs") or {}
    if "finished" not in outputs or "gate" not in outputs:
        return []
    return [str(outputs["gate"]), str(outputs.get("probe", outputs["gate"]))]
