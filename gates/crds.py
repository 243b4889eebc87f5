"""G8: every definition is established, and the API really serves the versions that are needed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from pydantic.dataclasses import dataclass

from gates.cluster import ClusterSession, ClusterTarget, Lists, by_name, is_true, said
from gates.kubernetes import MissingError, Object
from gates.session import Session
from gates.target import STRICT, parse
from gates.trouble import TroubleError
from gates.verdict import Finding, Healthy, Verdict, conclude
from gates.watch import Kind

CRDS = Kind(path="/apis/apiextensions.k8s.io/v1/customresourcedefinitions", name="crds")


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Definition:
    name: str
    versions: list[str]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class CrdsTarget(ClusterTarget):
    crds: list[Definition]


class CrdsSession(ClusterSession):
    """Definitions are watched; discovery, which has no watch, is asked once they all look right."""

    def __init__(self, target: CrdsTarget) -> None:
        super().__init__(target.kubeconfig, [CRDS], partial(judge, target))
        self._target = target

    async def look(self) -> Verdict:
        verdict = await super().look()
        if not isinstance(verdict, Healthy):
            return verdict
        missing = [found for crd in self._target.crds for found in await self._undiscovered(crd)]
        total = len(self._target.crds)
        return conclude(missing, list(verdict.evidence), done=total - len(missing), total=total)

    async def _undiscovered(self, crd: Definition) -> list[Finding]:
        plural, _, group = crd.name.partition(".")
        absent = [version for version in crd.versions if not await self._lists(group, version, plural)]
        return [
            Finding(
                observed=f"{crd.name}: discovery does not list {group}/{version} yet",
                look=(f"{self._target.kubectl} get --raw /apis/{group}/{version}",),
            )
            for version in absent
        ]

    async def _lists(self, group: str, version: str, plural: str) -> bool:
        try:
            found = await self.api.get(f"/apis/{group}/{version}")
        except (MissingError, TroubleError):
            return False
        return any(each["name"] == plural for each in found.get("resources") or [])


def crds(target: Mapping[str, Any]) -> Session:
    return CrdsSession(parse(CrdsTarget, target))


def judge(target: CrdsTarget, lists: Lists) -> Verdict:
    live = by_name(lists["crds"])
    findings = [found for crd in target.crds for found in _definition(target, crd, live.get(crd.name))]
    evidence = [f"{crd.name} serves {', '.join(crd.versions)}" for crd in target.crds]
    return conclude(findings, evidence, done=len(target.crds) - len(findings), total=len(target.crds))


def _definition(target: CrdsTarget, crd: Definition, item: Object | None) -> list[Finding]:
    look = (f"{target.kubectl} get crd {crd.name} -o yaml",)
    if item is None:
        return [Finding(observed=f"no definition {crd.name}", cause="it was not applied, or was deleted", look=look)]
    if not is_true(item, "Established"):
        return [Finding(observed=f"{crd.name}: {said(item, 'Established')}", look=look)]
    served = [version["name"] for version in item["spec"]["versions"] if version.get("served")]
    lacking = [version for version in crd.versions if version not in served]
    if lacking:
        observed = f"{crd.name} serves {', '.join(served)}, but {', '.join(lacking)} is needed"
        return [Finding(observed=observed, cause="another release of these definitions was installed", look=look)]
    return []
