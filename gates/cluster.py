"""Probes that are a judgement over Kubernetes objects: what they list, and what they make of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import Any

from pydantic.dataclasses import dataclass

from gates.kubernetes import Kubernetes, Object, kubectl
from gates.session import Session
from gates.target import STRICT
from gates.trouble import TroubleError
from gates.verdict import Failed, Finding, Healthy, Verdict, Waiting
from gates.watch import Kind, Watched

Lists = Mapping[str, list[Object]]
Judge = Callable[[Lists], Verdict]

NODES = Kind(path="/api/v1/nodes", name="nodes")
PODS = Kind(path="/api/v1/pods", name="pods")
EVENTS_PATH = "/api/v1/events"


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ClusterTarget:
    kubeconfig: str = field(repr=False)

    @property
    def kubectl(self) -> str:
        return kubectl(self.kubeconfig)


class ClusterSession(Session):
    """Watches some kinds and judges them together; what it calls healthy was read afresh."""

    def __init__(self, kubeconfig: str, kinds: Iterable[Kind], judge: Judge) -> None:
        self.api = Kubernetes(kubeconfig)
        self.watched = Watched(self.api, kinds)
        self._judge = judge
        self._started = False

    async def look(self) -> Verdict:
        self.watched.settle()
        fresh = not self._started
        await self.watched.start()
        self._started = True
        verdict = self._verdict()
        if isinstance(verdict, Healthy) and not fresh:
            await self.watched.refresh()
            verdict = self._verdict()
        return verdict

    async def changed(self) -> None:
        await self.watched.changed()

    async def evidence(self) -> dict[str, Any]:
        pods, events, nodes = await asyncio.gather(
            self.api.get(PODS.path), self.api.get(EVENTS_PATH, limit="200"), self.api.get(NODES.path)
        )
        return {
            "pods by node": _pods_by_node(pods["items"]),
            "recent events": [_event(item) for item in events["items"][-100:]],
            "node conditions": {name_of(node): _conditions(node) for node in nodes["items"]},
        }

    async def close(self) -> None:
        await self.watched.close()
        await self.api.close()

    def _verdict(self) -> Verdict:
        troubles = self.watched.troubles()
        if troubles:
            return troubled(troubles)
        return self._judge({name: self.watched.objects(name) for name in self.watched.collections})


def troubled(troubles: list[TroubleError]) -> Verdict:
    """The API did not answer as it should."""
    unique = {trouble.observed: trouble for trouble in troubles}
    findings = tuple(Finding(observed=each.observed, cause=each.cause) for each in unique.values())
    hopeless = any(trouble.hopeless for trouble in troubles)
    return Failed(findings=findings) if hopeless else Waiting(findings=findings)


def condition(item: Object, kind: str) -> Object:
    """One of an object's conditions; empty while it has none of that type."""
    conditions = (item.get("status") or {}).get("conditions") or []
    return next((dict(each) for each in conditions if each.get("type") == kind), {})


def is_true(item: Object, kind: str) -> bool:
    return condition(item, kind).get("status") == "True"


def reconciled(item: Object) -> bool:
    """Ready, and that of the spec as it is now."""
    ready, generation = condition(item, "Ready"), int(item["metadata"].get("generation", 0))
    return ready.get("status") == "True" and int(ready.get("observedGeneration", generation)) >= generation


def said(item: Object, kind: str) -> str:
    """A condition as a person reads it."""
    found = condition(item, kind)
    if not found:
        return f"no condition {kind} yet"
    words = ": ".join(word for word in (found.get("reason"), found.get("message")) if word)
    return f"{kind}={found.get('status')}" + (f" ({words})" if words else "")


def name_of(item: Object) -> str:
    return str(item["metadata"]["name"])


def namespace_of(item: Object) -> str:
    return str(item["metadata"].get("namespace", ""))


def by_name(items: list[Object], namespace: str | None = None) -> dict[str, Object]:
    return {name_of(item): item for item in items if namespace is None or namespace_of(item) == namespace}


def _pods_by_node(pods: list[Object]) -> dict[str, list[str]]:
    table: dict[str, list[str]] = {}
    for pod in pods:
        node = pod["spec"].get("nodeName", "(not scheduled)")
        table.setdefault(node, []).append(f"{namespace_of(pod)}/{name_of(pod)} {pod_state(pod)}")
    return {node: sorted(lines) for node, lines in sorted(table.items())}


def pod_state(pod: Object) -> str:
    """The phase, or what a container waits for."""
    status = pod.get("status") or {}
    containers = [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]
    waits = [each["state"]["waiting"] for each in containers if "waiting" in (each.get("state") or {})]
    if waits:
        return ": ".join(word for word in (waits[0].get("reason"), waits[0].get("message")) if word)
    unscheduled = condition(pod, "PodScheduled")
    if unscheduled.get("status") == "False":
        return f"Pending: {unscheduled.get('message') or unscheduled.get('reason')}"
    phase = str(status.get("phase", "Unknown"))
    unready = condition(pod, "Ready")
    if phase != "Running" or unready.get("status") != "False":
        return phase
    return f"{phase}, not ready" + (f": {unready['message']}" if unready.get("message") else "")


def _event(item: Object) -> str:
    about = item.get("involvedObject") or {}
    when = item.get("lastTimestamp") or item.get("eventTime") or ""
    return f"{when} {about.get('kind')}/{about.get('name')} {item.get('reason')}: {item.get('message')}"


def _conditions(node: Object) -> dict[str, str]:
    return {each["type"]: said(node, each["type"]) for each in (node.get("status") or {}).get("conditions") or []}
