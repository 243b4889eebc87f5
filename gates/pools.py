"""G12c: the load-balancer pools are in use and do not conflict, and the gateway class has been accepted."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from pydantic.dataclasses import dataclass

from gates import workloads
from gates.cluster import ClusterSession, ClusterTarget, Lists, by_name, condition, is_true, said
from gates.kubernetes import Object
from gates.session import Session
from gates.target import STRICT, parse
from gates.verdict import Finding, Verdict, conclude
from gates.watch import Kind

POOLS = Kind(path="/apis/cilium.io/v2/ciliumloadbalancerippools", name="pools")
CLASSES = Kind(path="/apis/gateway.networking.k8s.io/v1/gatewayclasses", name="classes")
CLASS_CRD = Kind(
    path="/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    name="definitions",
    fields="metadata.name=gatewayclasses.gateway.networking.k8s.io",
)
OPERATORS = workloads.pods(selector="name=cilium-operator")
CONFLICT = "cilium.io/PoolConflict"
COUNTED = "cilium.io/IPsTotal"
"""The operator writes this on every pool it has taken in; of a conflict it speaks only when there is or was one."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class PoolsTarget(ClusterTarget):
    pools: list[str]
    gateway_class: str | None = None


def pools(target: Mapping[str, Any]) -> Session:
    parsed = parse(PoolsTarget, target)
    kinds = ([POOLS] if parsed.pools else []) + ([CLASSES, CLASS_CRD, OPERATORS] if parsed.gateway_class else [])
    return ClusterSession(parsed.kubeconfig, kinds, partial(judge, parsed))


def judge(target: PoolsTarget, lists: Lists) -> Verdict:
    live = by_name(lists.get("pools", []))
    findings = [found for name in target.pools if (found := _pool(target, name, live.get(name)))]
    if target.gateway_class:
        gateway = _gateway(target, target.gateway_class, lists)
        findings += [gateway] if gateway else []
    evidence = [f"pool {name}: no conflict" for name in target.pools]
    evidence += [f"GatewayClass {target.gateway_class}: Accepted"] if target.gateway_class else []
    return conclude(findings, evidence)


def _pool(target: PoolsTarget, name: str, item: Object | None) -> Finding | None:
    look = (f"{target.kubectl} get ciliumloadbalancerippools {name} -o yaml",)
    if item is None:
        return Finding(observed=f"no load-balancer pool {name}", look=look)
    if is_true(item, CONFLICT):
        observed = f"pool {name}: {condition(item, CONFLICT).get('message') or 'conflicting'}"
        return Finding(observed=observed, cause="another pool holds the same addresses", look=look)
    if not condition(item, COUNTED):
        observed = f"pool {name}: the operator has not looked at it yet"
        return Finding(observed=observed, cause="no Cilium operator runs, or LB IPAM is off", look=look)
    return None


def _gateway(target: PoolsTarget, name: str, lists: Lists) -> Finding | None:
    item = by_name(lists["classes"]).get(name)
    if item and is_true(item, "Accepted"):
        return None
    late = came_late(lists["definitions"], lists["pods"])
    restart = f"{target.kubectl} -n kube-system rollout restart deployment/cilium-operator"
    return Finding(
        observed=f"GatewayClass {name}: {said(item, 'Accepted') if item else 'does not exist'}",
        cause="the Gateway API definitions came after the operator, which looks for them once, at its start"
        if late
        else "the operator has not accepted it: gatewayAPI.enabled, and the definitions it needs",
        look=(f"{target.kubectl} get gatewayclass {name} -o yaml", *((restart,) if late else ())),
    )


def came_late(definitions: list[Object], operators: list[Object]) -> bool:
    """Whether every running operator started before the definitions existed; RFC 3339 times compare as text."""
    created = [str(item["metadata"].get("creationTimestamp", "")) for item in definitions]
    started = [started for pod in operators if (started := _started(pod))]
    return bool(created and started) and max(started) < min(created)


def _started(pod: Object) -> str:
    status = pod.get("status") or {}
    running = [
        each["state"]["running"] for each in status.get("containerStatuses") or [] if each["state"].get("running")
    ]
    return str(running[0].get("startedAt", "")) if running else str(status.get("startTime", ""))
