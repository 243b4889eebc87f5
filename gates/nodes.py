"""G7 and G10: exactly the expected nodes are registered, and then: each of them Ready and schedulable."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from pydantic.dataclasses import dataclass

from gates.cluster import NODES, ClusterSession, ClusterTarget, Lists, by_name, condition, name_of, said
from gates.kubernetes import Object
from gates.session import Session
from gates.target import STRICT, NodeRef, parse
from gates.verdict import Finding, Verdict, conclude

LEFTOVER_TAINTS = {
    "node.cilium.io/agent-not-ready": "no Cilium agent has become ready on this node, so nothing else may run there",
    "node.kubernetes.io/not-ready": "the kubelet does not report Ready",
    "node.kubernetes.io/unreachable": "the kubelet stopped reporting",
    "node.kubernetes.io/network-unavailable": "the CNI has not set up this node's network",
    "node.cloudprovider.kubernetes.io/uninitialized": "no cloud controller manager has initialised this node",
}


@dataclass(frozen=True, kw_only=True, config=STRICT)
class NodesTarget(ClusterTarget):
    nodes: list[NodeRef]


def registered(target: Mapping[str, Any]) -> Session:
    parsed = parse(NodesTarget, target)
    return ClusterSession(parsed.kubeconfig, [NODES], partial(judge_registered, parsed))


def ready(target: Mapping[str, Any]) -> Session:
    parsed = parse(NodesTarget, target)
    return ClusterSession(parsed.kubeconfig, [NODES], partial(judge_ready, parsed))


def judge_registered(target: NodesTarget, lists: Lists) -> Verdict:
    live = by_name(lists["nodes"])
    findings = [*membership(target, live)]
    done = sum(node.name in live for node in target.nodes)
    evidence = [f"{len(live)} nodes registered: {', '.join(sorted(live))}"]
    return conclude(findings, evidence, done=done, total=len(target.nodes))


def judge_ready(target: NodesTarget, lists: Lists) -> Verdict:
    live = by_name(lists["nodes"])
    unready = [found for node in target.nodes if node.name in live for found in _state(target, node, live[node.name])]
    findings = [*membership(target, live), *unready]
    troubled = {found.subject for found in findings}
    done = sum(node.name in live and node.name not in troubled for node in target.nodes)
    evidence = [f"{name}: Ready, schedulable" for name in sorted(live)]
    return conclude(findings, evidence, done=done, total=len(target.nodes))


def membership(target: NodesTarget, live: dict[str, Object]) -> list[Finding]:
    """Missing, wrongly named, wrongly addressed, doubled and unexpected nodes, each told apart."""
    expected = {node.name: node for node in target.nodes}
    strangers = {name: item for name, item in live.items() if name not in expected}
    findings = []
    for node in target.nodes:
        alias = next((name for name, item in strangers.items() if node.address in addresses(item)), None)
        if node.name not in live:
            findings.append(_misnamed(target, node, alias) if alias else _missing(target, node))
        elif alias:
            findings.append(_doubled(target, node, alias))
        elif addresses(live[node.name]) and node.address not in addresses(live[node.name]):
            findings.append(_misaddressed(target, node, live[node.name]))
    known = {node.address for node in target.nodes}
    return findings + [_stranger(target, item) for item in strangers.values() if not known & set(addresses(item))]


def addresses(item: Object) -> list[str]:
    found = (item.get("status") or {}).get("addresses") or []
    return [each["address"] for each in found if each["type"] == "InternalIP"]


def _missing(target: NodesTarget, node: NodeRef) -> Finding:
    talosctl = f"talosctl -n {node.address} -e {node.address}"
    return Finding(
        node=node,
        observed="not registered with the API server",
        cause="its kubelet does not run, or cannot reach the API endpoint",
        look=(
            f"{talosctl} service kubelet",
            f"{talosctl} logs kubelet --tail 50",
            f"{target.kubectl} get nodes -o wide",
        ),
    )


def _misnamed(target: NodesTarget, node: NodeRef, alias: str) -> Finding:
    return Finding(
        node=node,
        observed=f"registered as {alias}",
        cause="its machine configuration carries another hostname, or none",
        look=(
            f"talosctl -n {node.address} -e {node.address} get hostnamestatus",
            f"{target.kubectl} get node {alias} -o wide",
            f"{target.kubectl} delete node {alias}   (once its hostname is right)",
        ),
    )


def _doubled(target: NodesTarget, node: NodeRef, alias: str) -> Finding:
    return Finding(
        node=node,
        observed=f"its address {node.address} is also that of the node {alias}",
        cause="a machine that was renamed leaves its old Node behind, or two machines share an address",
        look=(f"{target.kubectl} get nodes -o wide", f"{target.kubectl} delete node {alias}   (if it is the leftover)"),
    )


def _misaddressed(target: NodesTarget, node: NodeRef, item: Object) -> Finding:
    return Finding(
        node=node,
        observed=f"registered with the address {', '.join(addresses(item))}",
        cause="a second address on its NIC (DHCP beside the static one), or kubelet.nodeIP.validSubnets does not fit",
        look=(f"talosctl -n {node.address} -e {node.address} get addresses", f"{target.kubectl} get nodes -o wide"),
    )


def _stranger(target: NodesTarget, item: Object) -> Finding:
    name = name_of(item)
    return Finding(
        observed=f"unexpected node {name} ({', '.join(addresses(item)) or 'no address'})",
        cause="a node that left the stack file, or a machine of another cluster with this one's credentials",
        look=(
            f"{target.kubectl} describe node {name}",
            f"{target.kubectl} delete node {name}   (once its machine is gone for good)",
        ),
    )


def _state(target: NodesTarget, node: NodeRef, item: Object) -> list[Finding]:
    describe = f"{target.kubectl} describe node {node.name}"
    kubelet = f"talosctl -n {node.address} -e {node.address} service kubelet"
    if condition(item, "Ready").get("status") != "True":
        cause = _why_unready(item)
        return [Finding(node=node, observed=said(item, "Ready"), cause=cause, look=(kubelet, describe), ladder=True)]
    taints = [taint["key"] for taint in item["spec"].get("taints") or [] if taint["key"] in LEFTOVER_TAINTS]
    if taints:
        causes = LEFTOVER_TAINTS[taints[0]]
        return [Finding(node=node, observed=f"tainted {', '.join(taints)}", cause=causes, look=(describe,))]
    if item["spec"].get("unschedulable"):
        uncordon = f"{target.kubectl} uncordon {node.name}"
        return [Finding(node=node, observed="cordoned", cause="somebody drained it", look=(describe, uncordon))]
    return []


def _why_unready(item: Object) -> str:
    found = condition(item, "Ready")
    text = f"{found.get('reason', '')} {found.get('message', '')}"
    if found.get("status") == "Unknown":
        return "the kubelet stopped reporting: it is stuck, or the machine is off"
    if "NetworkPluginNotReady" in text or "cni" in text.lower():
        return "no CNI on this node: its Cilium agent does not run"
    return "the kubelet says so itself"
