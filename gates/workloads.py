"""Deployments, daemon sets and their pods, as every Kubernetes gate judges them."""

from __future__ import annotations

from gates.cluster import Lists, by_name, condition, name_of, pod_state, said
from gates.kubernetes import Object
from gates.verdict import Finding
from gates.watch import Kind


def deployments(namespace: str | None = None, *, selector: str = "", named: str = "") -> Kind:
    return Kind(
        path=f"/apis/apps/v1/{_scope(namespace)}deployments",
        name="deployments",
        labels=selector,
        fields=f"metadata.name={named}" if named else "",
    )


def daemon_sets(namespace: str) -> Kind:
    return Kind(path=f"/apis/apps/v1/{_scope(namespace)}daemonsets", name="daemonsets")


def pods(namespace: str | None = None, *, selector: str = "") -> Kind:
    return Kind(path=f"/api/v1/{_scope(namespace)}pods", name="pods", labels=selector)


def _scope(namespace: str | None) -> str:
    return f"namespaces/{namespace}/" if namespace else ""


def current(item: Object) -> bool:
    """Whether the status speaks of the spec as it is now."""
    return int((item.get("status") or {}).get("observedGeneration", 0)) >= int(item["metadata"].get("generation", 0))


def available(item: Object) -> bool:
    return current(item) and condition(item, "Available").get("status") == "True"


def deployment(lists: Lists, kubectl: str, namespace: str, name: str, cause: str = "") -> Finding | None:
    """What keeps a Deployment from being Available; None when nothing does."""
    item = by_name(lists["deployments"]).get(name)
    describe = f"{kubectl} -n {namespace} describe deployment {name}"
    if item is None:
        everywhere = f"{kubectl} get deployments -A"
        return Finding(observed=f"no Deployment {namespace}/{name}", cause=cause, look=(everywhere,))
    if available(item):
        return None
    states = _pod_states(lists, name)
    return Finding(
        observed=f"Deployment {namespace}/{name}: {_replicas(item)}, {said(item, 'Available')}" + states,
        cause=cause or "its pods do not become ready",
        look=(describe, f"{kubectl} -n {namespace} logs deployment/{name} --tail 50"),
    )


def _replicas(item: Object) -> str:
    status = item.get("status") or {}
    return f"{status.get('availableReplicas', 0)} of {item['spec'].get('replicas', 1)} available"


def _pod_states(lists: Lists, owner: str) -> str:
    found = [pod for pod in lists.get("pods", []) if name_of(pod).startswith(f"{owner}-") and not is_ready(pod)]
    return "".join(f"\npod {name_of(pod)}: {pod_state(pod)}" for pod in found[:3])


def is_ready(pod: Object) -> bool:
    return condition(pod, "Ready").get("status") == "True" and "deletionTimestamp" not in pod["metadata"]


def daemon_set_counts(item: Object) -> dict[str, int]:
    status = item.get("status") or {}
    return {
        "desired": int(status.get("desiredNumberScheduled", 0)),
        "updated": int(status.get("updatedNumberScheduled", 0)),
        "ready": int(status.get("numberReady", 0)),
        "available": int(status.get("numberAvailable", 0)),
    }
