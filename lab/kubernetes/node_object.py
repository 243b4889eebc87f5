"""The Node object that a kubelet registers, from the machine config of its node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lab.kubernetes.api import Object
from lab.kubernetes.manifests import CONTROL_PLANE_ROLE
from lab.kubernetes.settings import arguments, image_version

ARCHITECTURE = "amd64"
UNINITIALIZED = {"key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule"}
NO_NETWORK = (
    "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady "
    "message:Network plugin returns error: cni plugin not initialized"
)


@dataclass(frozen=True, kw_only=True)
class Node:
    """One machine as its kubelet sees it."""

    name: str
    address: str
    role: str
    """controlplane or worker"""
    vmid: int
    config: Mapping[str, Any]
    """The v1alpha1 document of its machine config."""
    documents: list[dict[str, Any]] = field(default_factory=list)
    cores: int = 4
    memory: int = 8192
    """In MiB."""

    @property
    def machine(self) -> Mapping[str, Any]:
        machine: Mapping[str, Any] = self.config.get("machine") or {}
        return machine

    @property
    def kubelet(self) -> Mapping[str, Any]:
        kubelet: Mapping[str, Any] = self.machine.get("kubelet") or {}
        return kubelet

    @property
    def cluster(self) -> Mapping[str, Any]:
        cluster: Mapping[str, Any] = self.config.get("cluster") or {}
        return cluster

    @property
    def is_control_plane(self) -> bool:
        return self.role == "controlplane"

    @property
    def kubeprism_port(self) -> int | None:
        """None where the machine config leaves KubePrism off."""
        kubeprism = (self.machine.get("features") or {}).get("kubePrism") or {}
        return int(kubeprism.get("port") or 7445) if kubeprism.get("enabled") else None


def registration(node: Node) -> Object:
    """What the kubelet itself creates, with the labels and taints it may set."""
    extra = arguments(node.kubelet.get("extraArgs"))
    configured = node.kubelet.get("extraConfig") or {}
    provider = ",".join(extra.get("provider-id") or []) or configured.get("providerID")
    spec: Object = {"taints": registered_taints(node)}
    if provider:
        spec["providerID"] = provider
    labels = {**own_labels(node), **_pairs(",".join(extra.get("node-labels") or []))}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node.name, "labels": labels}, "spec": spec}


def own_labels(node: Node) -> dict[str, str]:
    return {
        "beta.kubernetes.io/arch": ARCHITECTURE,
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": ARCHITECTURE,
        "kubernetes.io/hostname": node.name,
        "kubernetes.io/os": "linux",
    }


def talos_labels(node: Node) -> dict[str, str]:
    """What Talos adds afterwards; on a worker with the kubelet's credentials, so NodeRestriction has its say."""
    labels = {name: str(value) for name, value in (node.machine.get("nodeLabels") or {}).items()}
    return {CONTROL_PLANE_ROLE: "", **labels} if node.is_control_plane else labels


def talos_annotations(node: Node) -> dict[str, str]:
    return {name: str(value) for name, value in (node.machine.get("nodeAnnotations") or {}).items()}


def registered_taints(node: Node) -> list[Object]:
    extra = arguments(node.kubelet.get("extraArgs"))
    given = ",".join(extra.get("register-with-taints") or [])
    taints = [_taint(text) for text in given.split(",") if text]
    taints += (node.kubelet.get("extraConfig") or {}).get("registerWithTaints") or []
    taints += _role_taints(node)
    external = (node.cluster.get("externalCloudProvider") or {}).get("enabled")
    if external or extra.get("cloud-provider") == ["external"]:
        taints.append(UNINITIALIZED)
    return list({(taint["key"], taint["effect"]): taint for taint in taints}.values())


def talos_taints(node: Node) -> list[Object]:
    """Added like the labels: on a worker NodeRestriction refuses, as Talos's documentation warns."""
    given = (node.machine.get("nodeTaints") or {}).items()
    return [*_role_taints(node), *(_named_taint(key, str(value)) for key, value in given)]


def _role_taints(node: Node) -> list[Object]:
    schedulable = bool(node.cluster.get("allowSchedulingOnControlPlanes"))
    tainted = node.is_control_plane and not schedulable
    return [{"key": CONTROL_PLANE_ROLE, "effect": "NoSchedule"}] if tainted else []


def status(node: Node, *, network: bool, now: str) -> Object:
    resources = {
        "cpu": str(node.cores),
        "memory": f"{node.memory * 1024}Ki",
        "ephemeral-storage": "38000000Ki",
        "pods": "110",
    }
    return {
        "addresses": [
            {"type": "InternalIP", "address": node.address},
            {"type": "Hostname", "address": node.name},
        ],
        "capacity": resources,
        "allocatable": resources,
        "conditions": conditions(network=network, now=now),
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": _info(node),
    }


def conditions(*, network: bool, now: str) -> list[Object]:
    quiet = {
        "MemoryPressure": ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        "DiskPressure": ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        "PIDPressure": ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    }
    listed = [_condition(kind, False, reason, message, now) for kind, (reason, message) in quiet.items()]
    if network:
        listed.append(_condition("Ready", True, "KubeletReady", "kubelet is posting ready status", now))
    else:
        listed.append(_condition("Ready", False, "KubeletNotReady", NO_NETWORK, now))
    return listed


def _condition(kind: str, holds: bool, reason: str, message: str, now: str) -> Object:
    return {
        "type": kind,
        "status": str(holds),
        "reason": reason,
        "message": message,
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }


def _info(node: Node) -> Object:
    version = image_version(node.kubelet.get("image"))
    installer = image_version((node.machine.get("install") or {}).get("image"))
    return {
        "architecture": ARCHITECTURE,
        "bootID": f"00000000-0000-4000-8000-{node.vmid:012d}",
        "containerRuntimeVersion": "containerd://2.2.0",
        "kernelVersion": "6.18.0-talos",
        "kubeProxyVersion": "",
        "kubeletVersion": version,
        "machineID": f"{node.vmid:032x}",
        "operatingSystem": "linux",
        "osImage": f"Talos ({installer})",
        "systemUUID": f"00000000-0000-4000-8000-{node.vmid:012d}",
    }


def _taint(text: str) -> Object:
    """`key=value:Effect` or `key:Effect`, as the kubelet's flag has it."""
    left, _, effect = text.rpartition(":")
    key, _, value = left.partition("=")
    return _named_taint(key, f"{value}:{effect}" if value else effect)


def _named_taint(key: str, text: str) -> Object:
    """`value:Effect` or `Effect`, as the machine config has it."""
    value, _, effect = text.rpartition(":")
    taint = {"key": key, "effect": effect}
    return {**taint, "value": value} if value else taint


def _pairs(text: str) -> dict[str, str]:
    split = (pair.partition("=") for pair in text.split(",") if pair)
    return {key: value for key, _, value in split}
