"""G13a: the live pod network is the one the stack file describes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from ipaddress import IPv4Network
from typing import Any

from pydantic.dataclasses import dataclass

from gates.cluster import NODES, ClusterSession, ClusterTarget, Lists, by_name
from gates.kubernetes import Object
from gates.session import Session
from gates.target import STRICT, NodeRef, TalosCredentials, parse
from gates.verdict import Finding, Verdict, conclude
from gates.watch import Kind

SETTINGS = Kind(path="/api/v1/configmaps", name="settings", fields="metadata.name=cilium-config")


@dataclass(frozen=True, kw_only=True, config=STRICT)
class PodNetworkTarget(ClusterTarget):
    nodes: list[NodeRef]
    pod_cidr: str
    native_routing_cidr: str
    cluster_name: str
    cluster_id: int
    talos: TalosCredentials | None = None
    """Not asked: what the controller manager hands out to the nodes is what Talos configured."""

    @property
    def settings(self) -> dict[str, str]:
        return {
            "ipv4-native-routing-cidr": self.native_routing_cidr,
            "cluster-name": self.cluster_name,
            "cluster-id": str(self.cluster_id),
            "ipam": "kubernetes",
        }


def pod_network(target: Mapping[str, Any]) -> Session:
    parsed = parse(PodNetworkTarget, target)
    return ClusterSession(parsed.kubeconfig, [NODES, SETTINGS], partial(judge, parsed))


def judge(target: PodNetworkTarget, lists: Lists) -> Verdict:
    live = by_name(lists["nodes"])
    ranges = [found for node in target.nodes if (found := _range(target, node, live.get(node.name)))]
    findings = [*ranges, *_settings(target, lists["settings"])]
    evidence = [f"{node.name}: {', '.join(_ranges(live.get(node.name)))}" for node in target.nodes]
    evidence += [f"cilium-config {key}: {value}" for key, value in target.settings.items()]
    return conclude(findings, evidence, done=len(target.nodes) - len(ranges), total=len(target.nodes))


def _ranges(item: Object | None) -> list[str]:
    return list(item["spec"].get("podCIDRs") or []) if item else []


def _range(target: PodNetworkTarget, node: NodeRef, item: Object | None) -> Finding | None:
    found, whole = _ranges(item), IPv4Network(target.pod_cidr)
    inside = [text for text in found if ":" not in text and IPv4Network(text).subnet_of(whole)]
    if inside and len(inside) == len(found):
        return None
    return Finding(
        node=node,
        observed=f"its pod range is {', '.join(found) or 'not assigned'}, expected inside {whole}",
        cause="the control plane was configured with another pod subnet" if found else "no range was handed out yet",
        look=(
            f"{target.kubectl} get node {node.name} -o jsonpath='{{.spec.podCIDRs}}'",
            f"talosctl -n {node.address} -e {node.address} get controllermanagerconfig -o yaml",
        ),
    )


def _settings(target: PodNetworkTarget, items: list[Object]) -> list[Finding]:
    look = (f"{target.kubectl} -n kube-system get configmap cilium-config -o yaml",)
    if not items:
        return [Finding(observed="no ConfigMap cilium-config", cause="Cilium is not installed", look=look)]
    actual = items[0].get("data") or {}
    return [
        Finding(
            observed=f"cilium-config {key} is {actual.get(key, 'not set')}, expected {value}",
            cause="Cilium runs with values that are not the stack file's",
            look=look,
        )
        for key, value in target.settings.items()
        if actual.get(key) != value
    ]
