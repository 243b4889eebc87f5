"""The report of a rehearsal: what ran, what each gate saw, how long it took, and what was not shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any

from lab.engine import Finished

STAGES = {
    "GP": "Proxmox",
    "G1": "machines",
    "G2": "machine configs",
    "G3": "etcd",
    "G4": "kubelets",
    "G5": "Kubernetes API",
    "G6": "Kubernetes API",
    "G7": "nodes",
    "G8b": "prerequisites",
    "G8": "CRDs",
    "G9": "Cilium",
    "G10": "Cilium",
    "G11": "Cilium",
    "G11b": "cloud provider",
    "G12": "sealing key",
    "G12a": "DNS",
    "G12b": "sealed files",
    "G12c": "load balancer",
    "G13": "Flux",
    "G13a": "Cilium",
    "G14": "Flux",
    "G15": "GitOps",
    "G16": "GitOps",
    "G17": "storage",
    "G18": "final",
    "G19": "mesh",
}

NOT_SHOWN = (
    "Talos itself: installation on a disk, boot, kernel and extensions (its API is emulated)",
    "Proxmox VE itself: images and disks have sizes but no bytes (its API is emulated)",
    "cloud-init delivery by the hypervisor (the address a VM is given is taken from its settings)",
    "containers: pods have a status but no process, so nothing inside a pod was run, no exec, no smoke test",
    "the data path: no CNI, no service proxy, no traffic to a load-balancer address",
    "admission webhooks and aggregated APIs that pods would serve",
    "the internet: charts, images and repositories came from the lab's own servers",
)


LONGEST = 100


def shorten(text: str) -> str:
    """One line of a table; the report has it whole."""
    return text if len(text) <= LONGEST else text[: LONGEST - 1].rstrip() + "…"


@dataclass(frozen=True, kw_only=True)
class GateRecord:
    stage: str
    gate: str
    probe: str
    waited: float
    finished: str
    evidence: list[str]

    def row(self) -> tuple[str, str, str, str]:
        seen = f"{self.probe}: {'; '.join(self.evidence)}" if self.evidence else self.probe
        return self.stage, self.gate, shorten(seen), f"{self.waited:.1f}"


@dataclass(frozen=True, kw_only=True)
class Report:
    stack: str
    pace: float
    started: str
    success: bool
    failure: str | None = None
    stopped_after: str | None = None
    steps: list[dict[str, Any]] = field(default_factory=list)
    gates: list[GateRecord] = field(default_factory=list)
    programs: list[dict[str, str]] = field(default_factory=list)
    """Name, version and origin of every binary and plugin."""
    faults: list[dict[str, Any]] = field(default_factory=list)
    not_shown: Sequence[str] = NOT_SHOWN
    files: Mapping[str, str] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Report:
        records = [GateRecord(**gate) for gate in document["gates"]]
        return cls(**{**document, "gates": records})


def gates(state: Mapping[str, Any]) -> list[GateRecord]:
    """Every gate in an exported state, in the order they were passed."""
    resources = state.get("deployment", {}).get("resources") or []
    return sorted(map(_record, filter(_is_gate, resources)), key=lambda record: record.finished)


def steps(finished: Iterable[Finished], requests: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What the engine did, with how much of it was asked of the emulators and how much of that was a change."""
    return [_step(done, requests) for done in finished]


def _step(done: Finished, requests: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    ended = done.began + timedelta(seconds=done.seconds)
    during = [entry for entry in requests if done.began <= datetime.fromisoformat(entry["time"]) <= ended]
    return {
        "step": done.step,
        "seconds": round(done.seconds, 1),
        "exit_code": done.code,
        "requests": len(during),
        "writes": sum(bool(entry["write"]) for entry in during),
        "log": str(done.log),
    }


def _is_gate(resource: Mapping[str, Any]) -> bool:
    outputs = resource.get("outputs") or {}
    return str(resource.get("type", "")).startswith("pulumi-python:dynamic") and "gate" in outputs


def _record(resource: Mapping[str, Any]) -> GateRecord:
    outputs = resource["outputs"]
    gate = str(outputs["gate"])
    return GateRecord(
        stage=STAGES.get(gate, "other"),
        gate=gate,
        probe=str(outputs.get("probe", "")),
        waited=float(outputs.get("waited", 0.0)),
        finished=str(outputs.get("finished", "")),
        evidence=[str(line) for line in outputs.get("evidence") or []],
    )
