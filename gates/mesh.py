"""G19: this side of the mesh is served, and its agents hold the way to every other cluster."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from pydantic.dataclasses import dataclass

from gates import workloads
from gates.cluster import ClusterSession, ClusterTarget, Lists, by_name
from gates.kubernetes import Object
from gates.session import Session
from gates.target import STRICT, parse
from gates.verdict import Finding, Verdict, conclude
from gates.watch import Kind

APISERVER = "clustermesh-apiserver"
PEERS = "cilium-clustermesh"


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Peer:
    name: str
    nodes: int


@dataclass(frozen=True, kw_only=True, config=STRICT)
class MeshTarget(ClusterTarget):
    namespace: str
    clusters: list[Peer]


def mesh(target: Mapping[str, Any]) -> Session:
    parsed = parse(MeshTarget, target)
    space = f"/api/v1/namespaces/{parsed.namespace}"
    kinds = [
        workloads.deployments(parsed.namespace),
        workloads.daemon_sets(parsed.namespace),
        Kind(path=f"{space}/services", name="services", fields=f"metadata.name={APISERVER}"),
        Kind(path=f"{space}/secrets", name="peers", fields=f"metadata.name={PEERS}"),
    ]
    return ClusterSession(parsed.kubeconfig, kinds, partial(judge, parsed))


def judge(target: MeshTarget, lists: Lists) -> Verdict:
    cause = "the mesh's API server does not start"
    served = workloads.deployment(lists, target.kubectl, target.namespace, APISERVER, cause)
    found = [served, _address(target, lists["services"]), _agents(target, lists)]
    findings = [each for each in found if each] + _peers(target, lists["peers"])
    evidence = [f"{APISERVER}: Available at {', '.join(_ingress(lists['services']))}"]
    evidence += [f"agents hold the way to {peer.name} ({peer.nodes} nodes)" for peer in target.clusters]
    return conclude(findings, evidence)


def _ingress(services: list[Object]) -> list[str]:
    ingress = [each for item in services for each in (item["status"].get("loadBalancer") or {}).get("ingress") or []]
    return [str(each.get("ip") or each.get("hostname")) for each in ingress]


def _address(target: MeshTarget, services: list[Object]) -> Finding | None:
    if _ingress(services):
        return None
    look = (f"{target.kubectl} -n {target.namespace} describe service {APISERVER}",)
    cause = "no pool selects it, or the address it asks for is in none"
    return Finding(observed=f"Service {APISERVER} has no load-balancer address", cause=cause, look=look)


def _agents(target: MeshTarget, lists: Lists) -> Finding | None:
    item = by_name(lists["daemonsets"]).get("cilium")
    counts = workloads.daemon_set_counts(item) if item else {}
    if item and workloads.current(item) and len(set(counts.values())) == 1:
        return None
    told = ", ".join(f"{name} {count}" for name, count in counts.items()) or "missing"
    look = (f"{target.kubectl} -n {target.namespace} rollout status daemonset/cilium",)
    return Finding(observed=f"DaemonSet cilium: {told}", cause="agents take up the mesh one by one", look=look)


def _peers(target: MeshTarget, secrets: list[Object]) -> list[Finding]:
    known = {key for item in secrets for key in item.get("data") or {}}
    look = (
        f"{target.kubectl} -n {target.namespace} exec ds/cilium -c cilium-agent -- cilium-dbg status --verbose",
        "cilium clustermesh status",
    )
    return [
        Finding(
            observed=f"the agents know no way to cluster {peer.name}", cause="the mesh values name it not", look=look
        )
        for peer in target.clusters
        if peer.name not in known
    ]
