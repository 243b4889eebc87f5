"""Nodes and Kubernetes objects as the gate tests need them."""

from __future__ import annotations

from typing import Any

from gates.target import NodeRef
from tests.gates_kubernetes import FakeKubernetes, Object, condition

CP: dict[str, Any] = {"name": "cp-1", "address": "127.0.0.1", "vmid": 1111, "host": "atlas", "role": "controlplane"}
WORKER: dict[str, Any] = {"name": "w-1", "address": "127.0.0.2", "vmid": 1121, "host": "boreas", "role": "worker"}
NODES = [CP, WORKER]


def ref(node: dict[str, Any] = WORKER) -> NodeRef:
    return NodeRef(**node)


def node_object(name: str, address: str, *, ready: str = "True", **spec: Any) -> Object:
    conditions = [
        condition("Ready", ready, reason="KubeletReady" if ready == "True" else "KubeletNotReady"),
        condition("NetworkUnavailable", "False", reason="CiliumIsUp"),
    ]
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": spec,
        "status": {"conditions": conditions, "addresses": [{"type": "InternalIP", "address": address}]},
    }


def all_nodes(api: FakeKubernetes, **spec: Any) -> None:
    api.put("/api/v1/nodes", *(node_object(each["name"], each["address"], **spec) for each in NODES))


def deployment(
    namespace: str, name: str, *, available: bool = True, replicas: int = 1, labels: dict[str, str] | None = None
) -> Object:
    return {
        "metadata": {"namespace": namespace, "name": name, "generation": 2, "labels": labels or {}},
        "spec": {"replicas": replicas},
        "status": {
            "observedGeneration": 2,
            "availableReplicas": 1 if available else 0,
            "conditions": [condition("Available", "True" if available else "False", reason="MinimumReplicas")],
        },
    }


def daemon_set(namespace: str, name: str, count: int, *, ready: int | None = None) -> Object:
    status = {
        "observedGeneration": 1,
        "desiredNumberScheduled": count,
        "updatedNumberScheduled": count,
        "numberReady": count if ready is None else ready,
        "numberAvailable": count if ready is None else ready,
    }
    return {"metadata": {"namespace": namespace, "name": name, "generation": 1}, "spec": {}, "status": status}


def pod(namespace: str, name: str, node: str | None, *, ready: bool = True, waiting: Object | None = None) -> Object:
    status: Object = {
        "phase": "Running" if ready else "Pending",
        "conditions": [condition("Ready", "True" if ready else "False")],
        "startTime": "2026-11-18T10:00:00Z",
    }
    if waiting:
        status["containerStatuses"] = [{"state": {"waiting": waiting}}]
    spec = {"nodeName": node} if node else {}
    return {"metadata": {"namespace": namespace, "name": name, "labels": {}}, "spec": spec, "status": status}


def agent(node: str, **more: Any) -> Object:
    item = pod("kube-system", f"cilium-{node}", node, **more)
    item["metadata"]["labels"] = {"k8s-app": "cilium"}
    return item


def custom(name: str, namespace: str = "", **more: Any) -> Object:
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"metadata": meta, "spec": more.pop("spec", {}), **more}


def ready(status: str = "True", **more: Any) -> Object:
    return {"conditions": [condition("Ready", status, **more)]}
