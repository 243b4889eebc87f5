"""What a killed engine had begun and not written down as done, and the state in which each of it is settled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

Exported = dict[str, Any]
Record = dict[str, Any]


class Action(Enum):
    ADOPT = "adopted"
    AGAIN = "to be created again"
    ANEW = "half made: removed, and to be created anew"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What became of one creation, and so what is to be done about it."""

    action: Action
    observed: str
    identity: str = ""
    """The provider's id of what exists."""


@dataclass(frozen=True, kw_only=True)
class Pending:
    """One creation that had begun when the engine died."""

    urn: str
    type: str
    inputs: Mapping[str, Any]

    @property
    def name(self) -> str:
        return self.urn.rpartition("::")[2]


def pending_creates(exported: Exported) -> list[Pending]:
    """Creations of what the state does not hold; where it holds one already, a replacement was cut short."""
    held = {record["urn"] for record in _records(exported)}
    return [
        Pending(urn=record["urn"], type=record["type"], inputs=record.get("inputs", {}))
        for record in _creating(exported)
        if record["urn"] not in held
    ]


def unfinished(exported: Exported) -> list[str]:
    """URNs of what was being changed or deleted: it has to be looked at again."""
    held = {record["urn"] for record in _records(exported)}
    touched = (operation["resource"]["urn"] for operation in _operations(exported) if operation["type"] != "creating")
    return sorted(held & set(touched))


def settled(exported: Exported, findings: Mapping[str, Finding]) -> Exported:
    """The state with nothing pending: what exists is in it, the rest is forgotten."""
    known = [_known(record, findings[record["urn"]]) for record in _creating(exported) if record["urn"] in findings]
    deployment = {
        **exported["deployment"],
        "resources": [*_records(exported), *(record for record in known if record)],
        "pending_operations": [],
    }
    return {**exported, "deployment": deployment}


def _known(record: Record, finding: Finding) -> Record | None:
    if finding.action is Action.AGAIN:
        return None
    outputs = {**_plain(record.get("inputs", {})), "id": finding.identity}
    known = {**record, "id": finding.identity, "outputs": outputs}
    # What is half made has to be deleted for good, whatever protects it once it is whole.
    return known if finding.action is Action.ADOPT else {**known, "protect": False, "retainOnDelete": False}


def _plain(value: Any) -> Any:
    """Inputs without the engine's own notes, which no provider expects among outputs."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items() if key != "__defaults"}
    return [_plain(inner) for inner in value] if isinstance(value, list) else value


def _records(exported: Exported) -> list[Record]:
    return list((exported.get("deployment") or {}).get("resources") or [])


def _operations(exported: Exported) -> list[dict[str, Any]]:
    return list((exported.get("deployment") or {}).get("pending_operations") or [])


def _creating(exported: Exported) -> Iterable[Record]:
    return (operation["resource"] for operation in _operations(exported) if operation["type"] == "creating")
