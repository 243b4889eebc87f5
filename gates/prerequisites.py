"""G8b: the namespaces, secrets and settings that everything later leans on are there."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from pydantic.dataclasses import dataclass

from gates.cluster import ClusterSession, ClusterTarget, Lists, by_name, name_of, namespace_of
from gates.kubernetes import Object
from gates.session import Session
from gates.target import STRICT, ObjectRef, parse
from gates.verdict import Finding, Verdict, conclude
from gates.watch import Kind

NAMESPACES = Kind(path="/api/v1/namespaces", name="namespaces")
SECRETS = Kind(path="/api/v1/secrets", name="secrets", metadata_only=True)
CONFIG_MAPS = Kind(path="/api/v1/configmaps", name="configmaps", metadata_only=True)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class PrerequisitesTarget(ClusterTarget):
    namespaces: list[str]
    secrets: list[ObjectRef]
    configmaps: list[ObjectRef]


def prerequisites(target: Mapping[str, Any]) -> Session:
    parsed = parse(PrerequisitesTarget, target)
    return ClusterSession(parsed.kubeconfig, [NAMESPACES, SECRETS, CONFIG_MAPS], partial(judge, parsed))


def judge(target: PrerequisitesTarget, lists: Lists) -> Verdict:
    findings = [*_namespaces(target, by_name(lists["namespaces"]))]
    findings += _objects(target, "Secret", target.secrets, lists["secrets"])
    findings += _objects(target, "ConfigMap", target.configmaps, lists["configmaps"])
    evidence = [f"namespaces Active: {', '.join(target.namespaces)}"]
    evidence += [f"{ref.namespace}/{ref.name} exists" for ref in [*target.secrets, *target.configmaps]]
    return conclude(findings, evidence)


def _namespaces(target: PrerequisitesTarget, live: dict[str, Object]) -> list[Finding]:
    states = {name: _phase(live.get(name)) for name in target.namespaces}
    return [
        Finding(
            observed=f"namespace {name} is {state}",
            cause="something in it cannot be deleted" if state == "Terminating" else "",
            look=(f"{target.kubectl} get namespace {name} -o yaml",),
        )
        for name, state in states.items()
        if state != "Active"
    ]


def _phase(item: Object | None) -> str:
    return str((item.get("status") or {}).get("phase", "new")) if item else "missing"


def _objects(target: PrerequisitesTarget, kind: str, wanted: list[ObjectRef], live: list[Object]) -> list[Finding]:
    present = {(namespace_of(item), name_of(item)) for item in live}
    return [
        Finding(
            observed=f"{kind} {ref.namespace}/{ref.name} is missing",
            look=(f"{target.kubectl} -n {ref.namespace} get {kind.lower()}s",),
        )
        for ref in wanted
        if (ref.namespace, ref.name) not in present
    ]
