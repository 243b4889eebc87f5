"""G9 and G11: the agents run on exactly the expected nodes, the operator is there, and each node's network is up."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from pydantic.dataclasses import dataclass

from gates import workloads
from gates.cluster import NODES, ClusterSession, ClusterTarget, Lists, by_name, condition, pod_state, said
from gates.kubernetes import Object
from gates.session import Session
from gates.target import STRICT, NodeRef, parse
from gates.verdict import Finding, Verdict, conclude
from gates.watch import Kind

AGENT, OPERATOR = "cilium", "cilium-operator"
AGENT_LABEL = ("k8s-app", "cilium")
CILIUM_NODES = Kind(path="/apis/cilium.io/v2/ciliumnodes", name="ciliumnodes")


@dataclass(frozen=True, kw_only=True, config=STRICT)
class CiliumTarget(ClusterTarget):
    nodes: list[NodeRef]
    namespace: str


def cilium_workloads(target: Mapping[str, Any]) -> Session:
    parsed = parse(CiliumTarget, target)
    space = parsed.namespace
    kinds = [workloads.daemon_sets(space), workloads.deployments(space), workloads.pods(space)]
    return ClusterSession(parsed.kubeconfig, kinds, partial(judge_workloads, parsed))


def agents(target: Mapping[str, Any]) -> Session:
    parsed = parse(CiliumTarget, target)
    kinds = [NODES, workloads.pods(parsed.namespace), CILIUM_NODES]
    return ClusterSession(parsed.kubeconfig, kinds, partial(judge_agents, parsed))


def judge_workloads(target: CiliumTarget, lists: Lists) -> Verdict:
    daemon_set = by_name(lists["daemonsets"]).get(AGENT)
    operator = workloads.deployment(lists, target.kubectl, target.namespace, OPERATOR, _operator_cause(lists))
    agents = [found for node in target.nodes if (found := _agent(target, node, lists["pods"]))]
    # The operator first: without the definitions it registers no agent becomes ready.
    findings = [*([operator] if operator else []), *_daemon_set(target, daemon_set), *agents]
    done = len(target.nodes) - len(agents)
    return conclude(findings, _evidence(target, lists), done=done, total=len(target.nodes))


def judge_agents(target: CiliumTarget, lists: Lists) -> Verdict:
    nodes, cilium_nodes = by_name(lists["nodes"]), by_name(lists["ciliumnodes"])
    findings = []
    for node in target.nodes:
        agent = _agent(target, node, lists["pods"])
        network = _network(target, node, nodes.get(node.name))
        found = agent or network or (None if node.name in cilium_nodes else _unknown_to_cilium(target, node))
        findings += [found] if found else []
    evidence = [f"{node.name}: agent ready, network up, CiliumNode present" for node in target.nodes]
    return conclude(findings, evidence, done=len(target.nodes) - len(findings), total=len(target.nodes))


def _daemon_set(target: CiliumTarget, item: Object | None) -> list[Finding]:
    describe = f"{target.kubectl} -n {target.namespace} describe daemonset {AGENT}"
    if item is None:
        observed = f"no DaemonSet {target.namespace}/{AGENT}"
        return [Finding(observed=observed, cause="the Helm release is not installed", look=("helm list -A",))]
    counts, expected = workloads.daemon_set_counts(item), len(target.nodes)
    if workloads.current(item) and all(count == expected for count in counts.values()):
        return []
    told = ", ".join(f"{name} {count}" for name, count in counts.items())
    observed = f"DaemonSet {target.namespace}/{AGENT}: {told}; {expected} nodes are expected"
    return [Finding(observed=observed, cause=_count_cause(counts["desired"], expected), look=(describe,))]


def _count_cause(desired: int, expected: int) -> str:
    if desired < expected:
        return "a node has not registered, or the scheduler may not put an agent on it"
    if desired > expected:
        return "there are more nodes than the stack file names"
    return "agents start, or are being replaced"


def _agent(target: CiliumTarget, node: NodeRef, pods: list[Object]) -> Finding | None:
    key, value = AGENT_LABEL
    mine = [
        pod
        for pod in pods
        if (pod["metadata"].get("labels") or {}).get(key) == value and pod["spec"].get("nodeName") == node.name
    ]
    if any(workloads.is_ready(pod) for pod in mine):
        return None
    kubectl = f"{target.kubectl} -n {target.namespace}"
    state = f"its Cilium agent {mine[0]['metadata']['name']}: {pod_state(mine[0])}" if mine else "no Cilium agent pod"
    return Finding(
        node=node,
        observed=state,
        cause="the agent cannot start on this node" if mine else "no agent was scheduled onto this node",
        look=(
            f"{kubectl} describe pods -l {key}={value} --field-selector spec.nodeName={node.name}",
            f"{kubectl} get events --field-selector reason=FailedScheduling",
        ),
    )


def _operator_cause(lists: Lists) -> str:
    item = by_name(lists["deployments"]).get(OPERATOR)
    if item and int((item.get("status") or {}).get("availableReplicas", 0)) > 0:
        return "it is being replaced"
    return "no operator runs: no node gets an address range and no CRD is registered"


def _evidence(target: CiliumTarget, lists: Lists) -> list[str]:
    operator = by_name(lists["deployments"]).get(OPERATOR, {})
    up, wanted = (
        (operator.get("status") or {}).get("availableReplicas", 0),
        (operator.get("spec") or {}).get("replicas"),
    )
    normal = " (normal on one node: the replicas avoid each other)" if up != wanted else ""
    return [
        f"DaemonSet {AGENT}: desired = updated = available = {len(target.nodes)}",
        f"Deployment {OPERATOR}: {up} of {wanted} available{normal}",
    ]


def _network(target: CiliumTarget, node: NodeRef, item: Object | None) -> Finding | None:
    describe = f"{target.kubectl} describe node {node.name}"
    if item is None:
        return Finding(node=node, observed="not registered with the API server", look=(describe,))
    found = condition(item, "NetworkUnavailable")
    if found.get("status") == "False" and "cilium" in str(found.get("reason", "")).lower():
        return None
    cause = "the agent has not reported this node's network as up"
    return Finding(node=node, observed=said(item, "NetworkUnavailable"), cause=cause, look=(describe,))


def _unknown_to_cilium(target: CiliumTarget, node: NodeRef) -> Finding:
    return Finding(
        node=node,
        observed="no CiliumNode of this name",
        cause="the agent has not registered itself, or the operator removed it",
        look=(f"{target.kubectl} get ciliumnodes",),
    )
