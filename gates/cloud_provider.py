"""G11b: the cloud controller manager has taken every node in: no taint left, a provider id, a region and a zone."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from gates.cluster import NODES, ClusterSession, Lists, by_name
from gates.kubernetes import Object
from gates.nodes import NodesTarget
from gates.session import Session
from gates.target import NodeRef, parse
from gates.verdict import Finding, Verdict, conclude

UNINITIALIZED = "node.cloudprovider.kubernetes.io/uninitialized"
CONTROLLER = "app.kubernetes.io/name=proxmox-cloud-controller-manager"
TOPOLOGY = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")


def cloud_provider(target: Mapping[str, Any]) -> Session:
    parsed = parse(NodesTarget, target)
    return ClusterSession(parsed.kubeconfig, [NODES], partial(judge, parsed))


def judge(target: NodesTarget, lists: Lists) -> Verdict:
    live = by_name(lists["nodes"])
    lacking = {node: missing for node in target.nodes if (missing := _lacks(live.get(node.name)))}
    findings = [_finding(target, node, missing) for node, missing in lacking.items()]
    evidence = [f"{node.name}: {live[node.name]['spec']['providerID']}" for node in target.nodes if node not in lacking]
    return conclude(findings, evidence, done=len(target.nodes) - len(findings), total=len(target.nodes))


def _lacks(item: Object | None) -> list[str]:
    if item is None:
        return ["a Node object"]
    labels = item["metadata"].get("labels") or {}
    lacks = [] if item["spec"].get("providerID") else ["a provider id"]
    lacks += [f"the label {label}" for label in TOPOLOGY if label not in labels]
    tainted = any(taint["key"] == UNINITIALIZED for taint in item["spec"].get("taints") or [])
    return lacks + (["its initialisation"] if tainted else [])


def _finding(target: NodesTarget, node: NodeRef, missing: list[str]) -> Finding:
    return Finding(
        node=node,
        observed=f"lacks {', '.join(missing)}",
        cause="the cloud controller manager does not run, or Proxmox refuses its token",
        look=(
            f"{target.kubectl} describe node {node.name}",
            f"{target.kubectl} logs -n kube-system -l {CONTROLLER} --tail 50",
        ),
    )
