"""The Helm values Cilium is born with; plain values in, plain values out.

Off at birth is everything that would wait for something that comes later: Hubble's relay waits for DNS, the mesh for
load-balancer pools, a load-balancer address for an announcer.
"""

from __future__ import annotations

from typing import Any

from components.machine_config import KUBE_PRISM_PORT
from config import ClusterConfig
from config.chart_keys import dead_keys
from config.errors import refusal

AGENT_CAPABILITIES = [
    "CHOWN", "KILL", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "SYS_ADMIN", "SYS_RESOURCE",
    "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID",
]  # fmt: skip
"""Never SYS_MODULE: Talos lets no container load a kernel module."""

CLEANUP_CAPABILITIES = ["NET_ADMIN", "SYS_ADMIN", "SYS_RESOURCE"]

Values = dict[str, Any]


def values(config: ClusterConfig) -> Values:
    """Bootstrap values with the stack's own merged last."""
    return merged(bootstrap_values(config), config.cilium.values)


def check(config: ClusterConfig, stack: str) -> None:
    """A new chart may have renamed a key of ours; said before anything is registered."""
    problems = list(dead_keys(config.versions.cilium, bootstrap_values(config), "bootstrap values of Cilium"))
    if problems:
        raise refusal(stack, problems)


def bootstrap_values(config: ClusterConfig) -> Values:
    return {
        "cluster": {"name": config.name, "id": config.cilium.id},
        **talos_values(),
        **routing_values(config),
        "operator": {"replicas": 2},
        "rollOutCiliumPods": True,
        "gatewayAPI": {"enabled": config.cilium.gateway_api},
        "l2announcements": {"enabled": config.cilium.announce == "l2"},
        "bgpControlPlane": {"enabled": config.cilium.announce == "bgp"},
        "hubble": {"enabled": False, "relay": {"enabled": False}, "ui": {"enabled": False}},
        "clustermesh": {"useAPIServer": False},
        **encryption_values(config),
    }


def talos_values() -> Values:
    return {
        "k8sServiceHost": "localhost",
        "k8sServicePort": KUBE_PRISM_PORT,
        "cgroup": {"autoMount": {"enabled": False}, "hostRoot": "/sys/fs/cgroup"},
        "securityContext": {
            "capabilities": {"ciliumAgent": AGENT_CAPABILITIES, "cleanCiliumState": CLEANUP_CAPABILITIES}
        },
    }


def routing_values(config: ClusterConfig) -> Values:
    return {
        "kubeProxyReplacement": True,
        "kubeProxyReplacementHealthzBindAddr": "0.0.0.0:10256",
        # The pod network is Talos's to hand out, so that one value feeds both.
        "ipam": {"mode": "kubernetes"},
        "routingMode": "native",
        "autoDirectNodeRoutes": True,
        "ipv4NativeRoutingCIDR": str(config.native_routing_cidr),
        "bpf": {"masquerade": config.cilium.bpf_masquerade, "hostLegacyRouting": config.cilium.host_legacy_routing},
    }


def encryption_values(config: ClusterConfig) -> Values:
    if config.cilium.encryption == "none":
        return {}
    return {"encryption": {"enabled": True, "type": config.cilium.encryption}}


def merged(base: Values, override: Values) -> Values:
    """Maps are merged key by key, everything else is replaced, as Helm does it."""
    result = dict(base)
    for key, value in override.items():
        below = result.get(key)
        result[key] = merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return result
