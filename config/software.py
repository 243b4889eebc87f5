"""Rules on Proxmox, Cilium, storage and the hand-over."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from .errors import Problem
from .model import ClusterConfig
from .patches import dig

PROVIDER_ONLY = ("rook", "ceph", "openebs", "longhorn", "linstor", "piraeus")
"""Storage that runs inside the cluster, by what its components' names contain."""

OWNED_VALUES = ("cluster", "ipv4NativeRoutingCIDR", "operator.replicas", "ipam.mode")
"""Chart values that the stack file already says elsewhere, and gates compare."""


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


def flux_reads_what_is_sealed(cluster: ClusterConfig) -> Iterator[Problem]:
    directory, path = cluster.sealing.directory, cluster.flux.path
    if not f"{directory}/".startswith(f"{path}/"):
        yield Problem(
            path="cluster.sealing.directory",
            message=f"{directory} is outside flux.path {path}; make sure a Kustomization there reads it",
            fix=f"write {path}/sealed",
            warning=True,
        )
