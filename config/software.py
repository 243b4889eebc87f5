"""Rules on Talos patches, Cilium, storage, timing and the hand-over."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, pairwise
from typing import Any

from .errors import Problem, nearest
from .model import ClusterConfig
from .talos import Patch
from .timing import DEADLINES

PROVIDER_ONLY = ("rook", "ceph", "openebs", "longhorn", "linstor", "piraeus")
"""Storage that runs inside the cluster, by what its components' names contain."""

OWNED_VALUES = ("cluster", "ipv4NativeRoutingCIDR", "operator.replicas", "ipam.mode")
"""Chart values that the stack file already says elsewhere, and gates compare."""

FLUX_GATES = ("G15", "G16", "G18")


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
    bpf |= dig(cluster.cilium.values, "bpf") or {}
    if forward and bpf["masquerade"] and not bpf["hostLegacyRouting"]:
        yield Problem(
            path="cluster.cilium.host_legacy_routing",
            message="talos.host_dns_forward (forwardKubeDNSToHost) with cilium.bpf_masquerade and without "
            "host_legacy_routing cuts cluster DNS off from its upstream",
            fix="set cilium.host_legacy_routing: true, or talos.host_dns_forward: false",
        )


def patches_keep_the_network_static(cluster: ClusterConfig) -> Iterator[Problem]:
    for path, patch in patches(cluster):
        interfaces = dig(patch, "machine.network.interfaces") or []
        if str(patch.get("kind", "")).startswith("DHCP") or any(dig(item, "dhcp") for item in interfaces):
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


def certificates_are_checked_one_way(cluster: ClusterConfig) -> Iterator[Problem]:
    proxmox = cluster.proxmox
    if proxmox.insecure and proxmox.ca:
        yield Problem(
            path="cluster.proxmox.insecure", message="is true although proxmox.ca is given", fix="remove insecure"
        )
    if proxmox.ca and "-----BEGIN CERTIFICATE-----" not in proxmox.ca:
        yield Problem(path="cluster.proxmox.ca", message="is not a PEM certificate", fix="paste pve-root-ca.pem with |")


def bgp_has_peers(cluster: ClusterConfig) -> Iterator[Problem]:
    cilium = cluster.cilium
    if (cilium.announce == "bgp") != (cilium.bgp is not None):
        yield Problem(
            path="cluster.cilium.bgp",
            message=f"announce is {cilium.announce} and bgp is {'given' if cilium.bgp else 'missing'}",
            fix="announce: bgp goes with bgp: { local_asn, peers: [{ address, asn }] }, announce: l2 without it",
        )


def values_have_one_source(cluster: ClusterConfig) -> Iterator[Problem]:
    for key in OWNED_VALUES:
        if dig(cluster.cilium.values, key) is not None:
            yield Problem(
                path=f"cluster.cilium.values.{key}",
                message="is already decided by the stack file; two sources would drift apart",
                fix="remove it; the name, cilium.id, cilium.native_routing_cidr and network.pods are the source",
            )


def mesh_has_an_address(cluster: ClusterConfig) -> Iterator[Problem]:
    if cluster.mesh.enabled and "mesh" not in cluster.lb_addresses:
        yield Problem(
            path="cluster.lb_addresses.mesh",
            message="is missing although mesh.enabled is true",
            fix="add the address other clusters reach this one's mesh at",
        )


def storage_is_provided_by_providers(cluster: ClusterConfig) -> Iterator[Problem]:
    if cluster.storage.role == "provider":
        return
    charts = {f"cluster.charts[{index}]": chart.name for index, chart in enumerate(cluster.charts)}
    listed = {f"cluster.storage.components[{i}]": name for i, name in enumerate(cluster.storage.components)}
    for path, name in chain(listed.items(), charts.items()):
        if path in listed or any(word in name for word in PROVIDER_ONLY):
            yield Problem(
                path=path,
                message=f"{name} is storage run inside the cluster, and storage.role is {cluster.storage.role}",
                fix="remove it here; only the cluster with storage.role: provider runs it",
            )


def storage_has_a_role(cluster: ClusterConfig) -> Iterator[Problem]:
    if cluster.storage.role == "none" and cluster.storage.csi:
        yield Problem(
            path="cluster.storage.role",
            message="is none although storage.csi is given",
            fix="write consumer, or drop csi",
        )


def timeouts_are_in_order(cluster: ClusterConfig) -> Iterator[Problem]:
    timeouts = cluster.timeouts
    gate = min(FLUX_GATES, key=cluster.deadline)
    steps = [
        ("timeouts.attempt", timeouts.attempt),
        ("timeouts.helm_release", timeouts.helm_release),
        ("timeouts.kustomization", timeouts.kustomization),
        (f"deadlines.{gate}", cluster.deadline(gate)),
    ]
    for (inner, short), (outer, long) in pairwise(steps):
        if short >= long:
            yield Problem(
                path=f"cluster.{outer}",
                message=f"{long} s is not longer than {inner}, {short} s: the outer would give up first",
                fix="order them attempt < helm_release < kustomization < gate",
            )


def deadlines_outlast_an_attempt(cluster: ClusterConfig) -> Iterator[Problem]:
    for gate in DEADLINES:
        if cluster.deadline(gate) <= cluster.timeouts.attempt and gate not in FLUX_GATES:
            yield Problem(
                path=f"cluster.deadlines.{gate}",
                message=f"{cluster.deadline(gate)} s is not longer than timeouts.attempt, {cluster.timeouts.attempt} s",
                fix="a gate has to outlast one attempt: raise it, or lower timeouts.attempt",
            )


def deadlines_name_gates(cluster: ClusterConfig) -> Iterator[Problem]:
    for gate in cluster.deadlines:
        if gate not in DEADLINES:
            yield Problem(
                path=f"cluster.deadlines.{gate}",
                message=f"{gate} is not a gate",
                fix=nearest(gate, DEADLINES, f"choose from {', '.join(DEADLINES)}"),
            )


def flux_reads_what_is_sealed(cluster: ClusterConfig) -> Iterator[Problem]:
    directory, path = cluster.sealing.directory, cluster.flux.path
    if not f"{directory}/".startswith(f"{path}/"):
        yield Problem(
            path="cluster.sealing.directory",
            message=f"{directory} is outside flux.path {path}; make sure a Kustomization there reads it",
            fix=f"write {path}/sealed",
            warning=True,
        )
