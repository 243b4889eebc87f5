"""Whether a Cilium agent, configured as its pod and ConfigMap say, would run on a Talos node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import ip_network

from lab.kubernetes.api import Object
from lab.kubernetes.node_object import Node

CONFIG_MAP = "cilium-config"
REQUIRED = {
    "v2": {
        "ciliumclusterwidenetworkpolicies",
        "ciliumendpoints",
        "ciliumidentities",
        "ciliumloadbalancerippools",
        "ciliumnetworkpolicies",
        "ciliumnodes",
    },
    "v2alpha1": {"ciliuml2announcementpolicies", "ciliumpodippools"},
}
"""Custom resources by version without which an agent does not get past its start; its operator registers them."""


def is_agent(pod: Object) -> bool:
    labels = pod["metadata"].get("labels") or {}
    return labels.get("k8s-app") == "cilium" and agent_container(pod) is not None


def waits_for_pod_cidr(config: Mapping[str, str], pod_cidrs: Sequence[str]) -> bool:
    return config.get("ipam") == "kubernetes" and not pod_cidrs


def refusal(
    pod: Object, config: Mapping[str, str], *, pod_cidrs: Sequence[str], pod_subnets: Sequence[str]
) -> str | None:
    """Why it would not run on a node with these pod ranges; None when it would."""
    return _forbidden_capability(pod) or _cgroup_mount(pod) or _addresses(config, pod_cidrs, pod_subnets)


def agent_container(pod: Object) -> Object | None:
    containers: list[Object] = pod["spec"]["containers"]
    return next((item for item in containers if item["name"] == "cilium-agent"), None)


def _forbidden_capability(pod: Object) -> str | None:
    """Talos takes SYS_MODULE from everybody; asking for it by name fails the start of the container."""
    for container in [*(pod["spec"].get("initContainers") or []), *pod["spec"]["containers"]]:
        security = container.get("securityContext") or {}
        added = (security.get("capabilities") or {}).get("add") or []
        if not security.get("privileged") and {"SYS_MODULE", "CAP_SYS_MODULE", "ALL"} & set(added):
            return (
                f"container {container['name']}: failed to create containerd task: runc create failed: unable to apply "
                "caps: operation not permitted (Talos does not allow SYS_MODULE)"
            )
    return None


def _cgroup_mount(pod: Object) -> str | None:
    names = [container["name"] for container in pod["spec"].get("initContainers") or []]
    if "mount-cgroup" in names:
        return (
            "init container mount-cgroup: nsenter: cannot mount cgroup2 on Talos (set cgroup.autoMount.enabled: false)"
        )
    return None


def _addresses(config: Mapping[str, str], pod_cidrs: Sequence[str], pod_subnets: Sequence[str]) -> str | None:
    mode = config.get("ipam", "cluster-pool")
    pool = config.get("cluster-pool-ipv4-cidr", "10.0.0.0/8").split()
    cidrs = list(pod_cidrs) if mode == "kubernetes" else pool
    stray = [cidr for cidr in cidrs if not _inside(cidr, pod_subnets)]
    if stray:
        return f"pod CIDR {stray[0]} (ipam: {mode}) is outside the machine config's podSubnets {', '.join(pod_subnets)}"
    return _native_routing(config, cidrs)


def _native_routing(config: Mapping[str, str], cidrs: Sequence[str]) -> str | None:
    if config.get("routing-mode", "tunnel") != "native":
        return None
    native = config.get("ipv4-native-routing-cidr")
    if not native:
        return "native routing needs --ipv4-native-routing-cidr"
    stray = [cidr for cidr in cidrs if not _inside(cidr, [native])]
    return f"ipv4-native-routing-cidr {native} does not cover the pod CIDR {stray[0]}" if stray else None


def _inside(cidr: str, subnets: Sequence[str]) -> bool:
    inner = ip_network(cidr)
    outer = [ip_network(subnet) for subnet in subnets]
    return any(inner.version == net.version and inner.subnet_of(net) for net in outer)  # type: ignore[arg-type]


def cilium_node(node: Node, owner: Object, pod_cidrs: Sequence[str]) -> Object:
    """What the agent says about its node once it is up."""
    reference = {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": owner["metadata"]["uid"]}
    return {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumNode",
        "metadata": {
            "name": node.name,
            "labels": owner["metadata"].get("labels") or {},
            "ownerReferences": [reference],
        },
        "spec": {
            "addresses": [{"type": "InternalIP", "ip": node.address}],
            "ipam": {"podCIDRs": list(pod_cidrs)},
        },
    }


def cilium_endpoint(pod: Object, address: str, host: str) -> Object:
    """What the agent says about a pod on its network; the operator restarts DNS pods that lack one."""
    metadata = pod["metadata"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}
    return {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumEndpoint",
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "labels": metadata.get("labels") or {},
            "ownerReferences": [owner],
        },
        "status": {"state": "ready", "networking": {"addressing": [{"ipv4": address}], "node": host}},
    }
