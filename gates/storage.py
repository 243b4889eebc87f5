"""G17: the storage driver serves every schedulable node."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from pydantic.dataclasses import dataclass

from gates import workloads
from gates.cluster import NODES, ClusterSession, ClusterTarget, Lists, by_name
from gates.kubernetes import Object
from gates.session import Session
from gates.target import STRICT, NodeRef, parse
from gates.verdict import Finding, Verdict, conclude
from gates.watch import Kind

DRIVERS = Kind(path="/apis/storage.k8s.io/v1/csidrivers", name="drivers")
CSI_NODES = Kind(path="/apis/storage.k8s.io/v1/csinodes", name="csinodes")
CLASSES = Kind(path="/apis/storage.k8s.io/v1/storageclasses", name="classes")
BLOCKING = ("NoSchedule", "NoExecute")
TOKEN_HINT = "its pods do not start; a 401 in its log means the Proxmox token is missing or wrong"  # noqa: S105


@dataclass(frozen=True, kw_only=True, config=STRICT)
class StorageTarget(ClusterTarget):
    nodes: list[NodeRef]
    namespace: str
    release: str
    driver: str
    storage_class: str


def storage(target: Mapping[str, Any]) -> Session:
    parsed = parse(StorageTarget, target)
    space = parsed.namespace
    own = [workloads.deployments(space), workloads.daemon_sets(space), workloads.pods(space)]
    return ClusterSession(parsed.kubeconfig, [*own, NODES, DRIVERS, CSI_NODES, CLASSES], partial(judge, parsed))


def judge(target: StorageTarget, lists: Lists) -> Verdict:
    live, csi = by_name(lists["nodes"]), by_name(lists["csinodes"])
    serving = [node for node in target.nodes if node.name in live and schedulable(live[node.name])]
    controller = f"{target.release}-controller"
    unserved = [each for node in serving if (each := _node(target, node, csi.get(node.name)))]
    nobody = Finding(
        observed="no schedulable node", cause="every node is cordoned or tainted: nothing could use a volume"
    )
    found: list[Finding | None] = [
        None if serving else nobody,
        workloads.deployment(lists, target.kubectl, target.namespace, controller, TOKEN_HINT),
        _plugins(target, lists, len(serving)),
        _exists(target, "CSIDriver", target.driver, lists["drivers"]),
        _class(target, lists["classes"]),
        *unserved,
    ]
    evidence = [f"{controller}: Available", f"StorageClass {target.storage_class}: {target.driver}"]
    evidence += [f"{node.name}: {target.driver} with topology" for node in serving]
    findings = [each for each in found if each]
    return conclude(findings, evidence, done=len(serving) - len(unserved), total=len(serving))


def schedulable(item: Object) -> bool:
    blocked = any(taint.get("effect") in BLOCKING for taint in item["spec"].get("taints") or [])
    return not blocked and not item["spec"].get("unschedulable")


def _plugins(target: StorageTarget, lists: Lists, expected: int) -> Finding | None:
    name = f"{target.release}-node"
    item = by_name(lists["daemonsets"]).get(name)
    counts = workloads.daemon_set_counts(item) if item else {}
    if item and workloads.current(item) and counts["ready"] == counts["desired"] >= expected:
        return None
    told = f"desired {counts['desired']}, ready {counts['ready']}" if counts else "missing"
    return Finding(
        observed=f"DaemonSet {target.namespace}/{name}: {told}; {expected} schedulable nodes",
        cause="its namespace lacks the privileged pod-security label, or a node keeps its pods away",
        look=(f"{target.kubectl} -n {target.namespace} describe daemonset {name}",),
    )


def _node(target: StorageTarget, node: NodeRef, item: Object | None) -> Finding | None:
    drivers = {each["name"]: each for each in (item["spec"].get("drivers") or [])} if item else {}
    look = (f"{target.kubectl} get csinode {node.name} -o yaml",)
    if target.driver not in drivers:
        observed = f"{target.driver} is not registered on this node"
        return Finding(node=node, observed=observed, cause="its node plugin does not run here", look=look)
    if not drivers[target.driver].get("topologyKeys"):
        cause = "the node lacks the labels topology.kubernetes.io/region and zone"
        return Finding(node=node, observed=f"{target.driver} reports no topology", cause=cause, look=look)
    return None


def _exists(target: StorageTarget, kind: str, name: str, items: list[Object]) -> Finding | None:
    if name in by_name(items):
        return None
    return Finding(observed=f"no {kind} {name}", look=(f"{target.kubectl} get {kind.lower()}s",))


def _class(target: StorageTarget, items: list[Object]) -> Finding | None:
    missing = _exists(target, "StorageClass", target.storage_class, items)
    if missing:
        return missing
    provisioner = by_name(items)[target.storage_class].get("provisioner")
    if provisioner == target.driver:
        return None
    return Finding(observed=f"StorageClass {target.storage_class} belongs to {provisioner}, not to {target.driver}")
