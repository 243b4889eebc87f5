"""G13 and G14: Flux's operator runs, and its instance with every controller."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from gates import workloads
from gates.cluster import ClusterSession, ClusterTarget, Lists, is_true, name_of, namespace_of, reconciled, said
from gates.kubernetes import Object
from gates.session import Session
from gates.target import parse
from gates.verdict import Finding, Verdict, conclude
from gates.watch import Kind

OPERATOR = "flux-operator"
INSTANCE_CRD = "fluxinstances.fluxcd.controlplane.io"
CONTROLLERS = ("source-controller", "kustomize-controller", "helm-controller", "notification-controller")
INSTANCES = Kind(path="/apis/fluxcd.controlplane.io/v1/fluxinstances", name="instances")
DEFINITION = Kind(
    path="/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    name="definitions",
    fields=f"metadata.name={INSTANCE_CRD}",
)


def operator(target: Mapping[str, Any]) -> Session:
    parsed = parse(ClusterTarget, target)
    kinds = [workloads.deployments(named=OPERATOR), DEFINITION]
    return ClusterSession(parsed.kubeconfig, kinds, partial(judge_operator, parsed))


def instance(target: Mapping[str, Any]) -> Session:
    parsed = parse(ClusterTarget, target)
    kinds = [INSTANCES, workloads.deployments(selector="app.kubernetes.io/part-of=flux")]
    return ClusterSession(parsed.kubeconfig, kinds, partial(judge_instance, parsed))


def judge_operator(target: ClusterTarget, lists: Lists) -> Verdict:
    namespace = next((namespace_of(item) for item in lists["deployments"]), "flux-system")
    down = workloads.deployment(lists, target.kubectl, namespace, OPERATOR)
    findings = [down] if down else []
    if not any(is_true(item, "Established") for item in lists["definitions"]):
        look = (f"{target.kubectl} get crd {INSTANCE_CRD}",)
        findings.append(Finding(observed=f"{INSTANCE_CRD} is not established", look=look))
    return conclude(findings, [f"Deployment {namespace}/{OPERATOR}: Available", f"{INSTANCE_CRD}: Established"])


def judge_instance(target: ClusterTarget, lists: Lists) -> Verdict:
    if not lists["instances"]:
        return conclude([Finding(observed="no FluxInstance", look=(f"{target.kubectl} get fluxinstances -A",))], [])
    findings = [found for item in lists["instances"] if (found := _unready(target, item))]
    namespace = namespace_of(lists["instances"][0])
    downs = [workloads.deployment(lists, target.kubectl, namespace, name) for name in CONTROLLERS]
    findings += [down for down in downs if down]
    evidence = [f"FluxInstance {namespace_of(item)}/{name_of(item)}: Ready" for item in lists["instances"]]
    evidence += [f"Deployment {namespace}/{name}: Available" for name in CONTROLLERS]
    return conclude(findings, evidence, done=len(CONTROLLERS) - sum(down is not None for down in downs), total=4)


def _unready(target: ClusterTarget, item: Object) -> Finding | None:
    if reconciled(item):
        return None
    name = f"{namespace_of(item)}/{name_of(item)}"
    return Finding(
        observed=f"FluxInstance {name}: {said(item, 'Ready')}",
        cause="its controllers do not start, or its distribution cannot be pulled; pods need a healthy Cilium first",
        look=(
            f"{target.kubectl} -n {namespace_of(item)} describe fluxinstance {name_of(item)}",
            f"{target.kubectl} -n {namespace_of(item)} logs deployment/{OPERATOR} --tail 50",
        ),
    )
