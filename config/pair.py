"""Rules between a stack and each of the project's other stacks, whose committed files are read."""

from __future__ import annotations

from collections.abc import Iterator

from .claims import node_claims, pool_claims, vip_claim
from .errors import Problem, stack_file
from .model import ClusterConfig
from .networks import named_networks
from .patches import dig
from .versions import minor


def names_differ(cluster: ClusterConfig, stack: str, peer: ClusterConfig) -> Iterator[Problem]:
    if cluster.name == peer.name:
        yield Problem(
            path="cluster.name",
            message=f"{cluster.name} is also the name of the cluster in {stack_file(stack)}",
            fix="give each cluster a name of its own",
        )


def cilium_ids_differ(cluster: ClusterConfig, stack: str, peer: ClusterConfig) -> Iterator[Problem]:
    if cluster.cilium.id == peer.cilium.id:
        yield Problem(
            path="cluster.cilium.id",
            message=f"{cluster.cilium.id} is used by {cluster.name} and by {peer.name} ({stack_file(stack)})",
            fix="give each cluster an id of its own from 1 to 255",
        )


def nodes_differ(cluster: ClusterConfig, stack: str, peer: ClusterConfig) -> Iterator[Problem]:
    for name in cluster.nodes.keys() & peer.nodes.keys():
        yield Problem(
            path=f"cluster.nodes.{name}",
            message=f"{name} is also a node of {peer.name} ({stack_file(stack)})",
            fix=f"put the cluster into the name, such as {cluster.name}-{name}",
        )


def machines_differ(cluster: ClusterConfig, stack: str, peer: ClusterConfig) -> Iterator[Problem]:
    """VM ids are unique in one Proxmox cluster, MACs everywhere."""
    same_proxmox = cluster.proxmox.endpoint == peer.proxmox.endpoint
    fields = {"mac": "MAC address"} | ({"vmid": "VM id"} if same_proxmox else {})
    for field, what in fields.items():
        theirs = {getattr(node, field): name for name, node in peer.nodes.items()}
        for name, node in cluster.nodes.items():
            if (value := getattr(node, field)) in theirs:
                yield Problem(
                    path=f"cluster.nodes.{name}.{field}",
                    message=f"{what} {value} is used by {name} and by {theirs[value]} ({stack_file(stack)})",
                    fix=f"give {name} a {what} of its own",
                )


def networks_differ(cluster: ClusterConfig, stack: str, peer: ClusterConfig) -> Iterator[Problem]:
    for path, (mine, left) in named_networks(cluster).items():
        for theirs, right in named_networks(peer).values():
            if left.overlaps(right):
                yield Problem(
                    path=path,
                    message=f"{mine} {left} overlaps {theirs} {right} of {peer.name} ({stack_file(stack)})",
                    fix="choose a network that no cluster of the project uses",
                )


def addresses_differ(cluster: ClusterConfig, stack: str, peer: ClusterConfig) -> Iterator[Problem]:
    kinds = (vip_claim, node_claims, pool_claims)
    theirs = [claim for kind in kinds for claim in kind(peer)]
    for mine in [claim for kind in kinds for claim in kind(cluster)]:
        for claim in theirs:
            if mine.span.overlaps(claim.span):
                yield Problem(
                    path=mine.path,
                    message=f"{mine.clash(claim)} is used by {mine.owner} and by {claim.owner} ({stack_file(stack)})",
                    fix="move one of the two",
                )


def datapaths_agree(cluster: ClusterConfig, stack: str, peer: ClusterConfig) -> Iterator[Problem]:
    """Even before a mesh: changing these later restarts every workload."""
    for path, mine, theirs in (
        ("cilium.values.routingMode", _routing(cluster), _routing(peer)),
        ("cilium.encryption", cluster.cilium.encryption, peer.cilium.encryption),
        ("mesh.max_connected_clusters", cluster.mesh.max_connected_clusters, peer.mesh.max_connected_clusters),
    ):
        if mine != theirs:
            yield Problem(
                path=f"cluster.{path}",
                message=f"is {mine} in {cluster.name} and {theirs} in {peer.name} ({stack_file(stack)})",
                fix="make them equal; clusters that differ here cannot be meshed",
            )


def _routing(cluster: ClusterConfig) -> str:
    return str(dig(cluster.cilium.values, "routingMode") or "native")


def versions_are_close(cluster: ClusterConfig, stack: str, peer: ClusterConfig) -> Iterator[Problem]:
    for name in ("talos", "kubernetes", "cilium"):
        mine, theirs = getattr(cluster.versions, name), getattr(peer.versions, name)
        (major, here), (other_major, there) = minor(mine), minor(theirs)
        if major != other_major or abs(here - there) > 1:
            yield Problem(
                path=f"cluster.versions.{name}",
                message=f"{mine} in {cluster.name} and {theirs} in {peer.name} differ too much ({stack_file(stack)})",
                fix="bring the older one up first, one minor at a time",
            )
