"""What one call of the engine did under a fault, read from its event log, and what its message must say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.fault_table import Trial

Event = Mapping[str, Any]

GATE_TYPE = "dynamic/groundwork:Gate"
PROMISED = ("observed:", "look:")
BUNDLE = re.compile(r"^diagnostics: (\S+)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Stop:
    """A resource that failed, with all the engine said about it."""

    urn: str
    message: str

    @property
    def gate(self) -> str:
        """The gate's name in the catalogue, or `engine` for a resource of a provider."""
        return self.headline.split(" ", 1)[0] if GATE_TYPE in self.urn else "engine"

    @property
    def headline(self) -> str:
        return next((line.strip() for line in self.message.splitlines() if line.strip()), "")

    @property
    def name(self) -> str:
        return self.urn.rpartition("::")[2]


@dataclass(frozen=True, kw_only=True)
class Deed:
    """One call of the engine."""

    stops: list[Stop]
    touched: list[str]
    """Resources it created, changed or deleted."""
    passed: dict[str, float] = field(default_factory=dict)
    """Seconds each gate that opened had waited, by URN."""


def read(events: Iterable[Event]) -> Deed:
    told: dict[str, list[str]] = {}
    failed: list[str] = []
    touched: list[str] = []
    passed: dict[str, float] = {}
    for event in events:
        if metadata := event.get("resOpFailedEvent", {}).get("metadata"):
            failed.append(metadata["urn"])
        elif metadata := event.get("resOutputsEvent", {}).get("metadata"):
            if metadata["op"] not in ("same", "read"):
                touched.append(metadata["urn"])
            outputs = (metadata.get("new") or {}).get("outputs") or {}
            if metadata["op"] != "same" and "waited" in outputs:
                passed[metadata["urn"]] = float(outputs["waited"])
        elif (said := event.get("diagnosticEvent", {})).get("severity") == "error" and said.get("urn"):
            told.setdefault(said["urn"], []).append(plain(said["message"]))
    stops = [Stop(urn=urn, message="\n".join(told.get(urn, []))) for urn in dict.fromkeys(failed)]
    return Deed(stops=stops, touched=[urn for urn in touched if urn not in failed], passed=passed)


def plain(message: str) -> str:
    """Without the engine's colours and without its own first words about a gate."""
    text = re.sub(r"<\{%.*?%\}>", "", message)
    return re.sub(r"\A.*?(?=\bG[0-9P]+[abc]? )", "", text, flags=re.DOTALL) if "Exception calling" in text else text


def behind(urn: str, state: Mapping[str, Any]) -> set[str]:
    """Every resource of a complete state that must not begin before this one, itself not counted."""
    resources = [r for r in state["deployment"]["resources"] if r.get("custom")]
    reached = {urn}
    while True:
        more = {r["urn"] for r in resources if r["urn"] not in reached and not reached.isdisjoint(_needs(r))}
        if not more:
            return reached - {urn}
        reached |= more


def _needs(resource: Mapping[str, Any]) -> Iterator[str]:
    yield from resource.get("dependencies") or []
    for urns in (resource.get("propertyDependencies") or {}).values():
        yield from urns or []
    provider = str(resource.get("provider") or "")
    if provider:
        yield provider.rpartition("::")[0]


def omissions(stop: Stop, node: Mapping[str, Any] | None, trial: Trial, project: Path) -> list[str]:
    """What the message of a gate owes the operator and does not say."""
    lacking = [f"the message has no {label}" for label in PROMISED if label not in stop.message]
    if trial.about and node:
        wanted = (trial.about, str(node["address"]), str(node["vmid"]))
        lacking += [f"the message does not say {word}" for word in wanted if word not in stop.message]
        if trial.stuck_kubelet and f"qm reset {node['vmid']}" not in stop.message:
            lacking.append("the message has no recovery ladder for the node")
    return [*lacking, *_bundle(stop, project)]


def _bundle(stop: Stop, project: Path) -> list[str]:
    found = BUNDLE.search(stop.message)
    if not found:
        return ["the message names no diagnostics"]
    path = project / found[1]
    if not path.is_file():
        return [f"{found[1]} was named and not written"]
    mode = path.stat().st_mode & 0o777
    return [] if mode == 0o600 else [f"{found[1]} has mode {mode:04o}"]


def leaks(text: str, secrets: Iterable[str]) -> list[str]:
    """Tracebacks and credentials that came out."""
    found = ["a credential came out" for secret in secrets if secret in text]
    return [*found[:1], *(["a traceback came out"] if "Traceback (most recent" in text else [])]
