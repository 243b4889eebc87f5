"""The mirror pods by which a control plane's static pods show up in the API."""

from __future__ import annotations

import hashlib

from lab.kubernetes.api import Object
from lab.kubernetes.machine import MIRROR
from lab.kubernetes.node_object import Node
from lab.kubernetes.settings import image_version

COMPONENTS = {
    "kube-apiserver": "apiServer",
    "kube-controller-manager": "controllerManager",
    "kube-scheduler": "scheduler",
}


def static_pods(node: Node, uid: str) -> list[Object]:
    """None on a worker."""
    return [_pod(node, uid, name) for name in COMPONENTS] if node.is_control_plane else []


def _pod(node: Node, uid: str, name: str) -> Object:
    image = (node.cluster.get(COMPONENTS[name]) or {}).get("image") or f"registry.k8s.io/{name}:v1.36.0"
    digest = hashlib.sha256(f"{node.name}/{name}/{image}".encode()).hexdigest()[:32]
    owner = {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": uid, "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{name}-{node.name}",
            "namespace": "kube-system",
            "labels": _labels(name, image),
            "annotations": {
                MIRROR: digest,
                "kubernetes.io/config.hash": digest,
                "kubernetes.io/config.source": "http",
            },
            "ownerReferences": [owner],
        },
        "spec": {
            "nodeName": node.name,
            "hostNetwork": True,
            "priorityClassName": "system-cluster-critical",
            "enableServiceLinks": False,
            "containers": [{"name": name, "image": image}],
            "tolerations": [{"operator": "Exists", "effect": "NoExecute"}],
        },
    }


def _labels(name: str, image: str) -> dict[str, str]:
    return {
        "tier": "control-plane",
        "k8s-app": name,
        "component": name,
        "app.kubernetes.io/name": name,
        "app.kubernetes.io/version": image_version(image).removeprefix("v"),
        "app.kubernetes.io/component": "control-plane",
        "app.kubernetes.io/managed-by": "Talos",
    }
