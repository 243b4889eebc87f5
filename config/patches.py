"""Rules on the Talos patches of a stack file and on what they touch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .errors import Problem
from .model import ClusterConfig
from .talos import Patch


def dig(data: Any, path: str) -> Any:
    for part in path.split("."):
        data = data.get(part) if isinstance(data, dict) else None
    return data


def patches(cluster: ClusterConfig) -> Iterator[tuple[str, Patch]]:
    """Every Talos patch with its path in the stack file."""
    given = cluster.talos.patches
    groups = {"all": given.all, "controlplane": given.controlplane, "worker": given.worker}
    groups |= {f"nodes.{name}": documents for name, documents in given.nodes.items()}
    for group, documents in groups.items():
        for index, document in enumerate(documents):
            yield f"cluster.talos.patches.{group}[{index}]", document


def dns_reaches_the_host(cluster: ClusterConfig) -> Iterator[Problem]:
    """Asks what will be in force: the patches and values merged last may say otherwise than the keys."""
    said = [dig(patch, "machine.features.hostDNS.forwardKubeDNSToHost") for _, patch in patches(cluster)]
    forward = True in said or (cluster.talos.host_dns_forward and False not in said)
    bpf = {"masquerade": cluster.cilium.bpf_masquerade, "hostLegacyRouting": cluster.cilium.host_legacy_routing}
    bpf |= {key: value for key in bpf if (value := dig(cluster.cilium.values, f"bpf.{key}")) is not None}
    if forward and bpf["masquerade"] and not bpf["hostLegacyRouting"]:
        yield Problem(
            path="cluster.cilium.host_legacy_routing",
            message="talos.host_dns_forward (forwardKubeDNSToHost) with cilium.bpf_masquerade and without "
            "host_legacy_routing cuts cluster DNS off from its upstream",
            fix="set cilium.host_legacy_routing: true, or talos.host_dns_forward: false",
        )


def patches_keep_the_network_static(cluster: ClusterConfig) -> Iterator[Problem]:
    for path, patch in patches(cluster):
        interfaces = dig(patch, "machine.network.interfaces")
        dynamic = isinstance(interfaces, list) and any(dig(item, "dhcp") for item in interfaces)
        if dynamic or str(patch.get("kind", "")).startswith("DHCP"):
            yield Problem(
                path=path,
                message="turns DHCP on; a node with two addresses keeps restarting its kubelet",
                fix="remove it; nodes.<name>.address is the node's only address",
            )
        if dig(patch, "machine.network.hostname"):
            yield Problem(
                path=path,
                message="sets a host name, which nodes.<name> already does",
                fix="remove machine.network.hostname",
            )


def patches_are_known_kinds(cluster: ClusterConfig) -> Iterator[Problem]:
    for path, patch in patches(cluster):
        kind = str(patch.get("kind", ""))
        if kind.startswith("Kube") and kind.endswith("Config"):
            yield Problem(
                path=path, message=f"{kind} belongs to Talos 1.14", fix="use the v1alpha1 key that Talos 1.13 documents"
            )


def guest_agent_is_there(cluster: ClusterConfig) -> Iterator[Problem]:
    if "siderolabs/qemu-guest-agent" not in cluster.talos.extensions:
        yield Problem(
            path="cluster.talos.extensions",
            message="siderolabs/qemu-guest-agent is missing: Proxmox cannot shut the machines down cleanly",
            fix="add siderolabs/qemu-guest-agent",
            warning=True,
        )
