"""Rules between a stack and each of the project's other stacks, whose committed files are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Network

from . import networks
from .errors import Problem, nearest
from .model import ClusterConfig
from .software import dig
from .versions import minor

Peers = Mapping[str, ClusterConfig]


def _file(stack: str) -> str:
    return f"Pulumi.{stack}.yaml"


def names_differ(cluster: ClusterConfig, stack: str, peer: ClusterConfig) -> Iterator[Problem]:
    if cluster.name == peer.name:
        yield Problem(
            path="cluster.name",
            message=f"{cluster.name} is also the name of the cluster in {_file(stack)}",
            fix="give each cluster a name of its own",
        )


def cilium_ids_differ(cluster: ClusterConfig, stack: str, peer: ClusterConfig) -> Iterator[Problem]:
    if cluster.cilium.id == peer.cilium.id:
        yield Problem(
            path="cluster.cilium.id",
            message=f"{cluster.cilium.id} is used by {cluster.name} and by {peer.name} ({_file(stack)})",
            fix="give each cluster an id of its own from 1 to 255",
        )


def nodes_differ(cluster: ClusterConfig, stack: str, peer: ClusterConfig) -> Iterator[Problem]:
    for name in cluster.nodes.keys() & peer.nodes.keys():
        yield Problem(
            path=f"cluster.nodes.{name}",
            message=f"{name} is also a node of {peer.name} ({_file(stack)})",
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
                    message=f"{what} {value} is used by {name} and by {theirs[value]} ({_file(stack)})",
                    fix=f"give {name} a {what} of its own",
                )


def networks_differ(cluster: ClusterConfig, stack: str, peer: ClusterConfig) -> Iterator[Problem]:
    for path, (mine, left) in networks.named_networks(cluster).items():
        for theirs, right in networks.named_networks(peer).values():
            if left.overlaps(right):
                yield Problem(
                    path=path,
                    message=f"{mine} {left} overlaps {theirs} {right} of {peer.name} ({_file(stack)})",
                    fix="choose a network that no cluster of the project uses",
                )


def addresses_differ(cluster: ClusterConfig, stack: str, peer: ClusterConfig) -> Iterator[Problem]:
    kinds = (networks.vip_claim, networks.node_claims, networks.pool_claims)
    theirs = [claim for kind in kinds for claim in kind(peer)]
    for mine in [claim for kind in kinds for claim in kind(cluster)]:
        for claim in theirs:
            if mine.span.overlaps(claim.span):
                yield Problem(
                    path=mine.path,
                    message=f"{mine.clash(claim)} is used by {mine.owner} and by {claim.owner} ({_file(stack)})",
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
                message=f"is {mine} in {cluster.name} and {theirs} in {peer.name} ({_file(stack)})",
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
                message=f"{mine} in {cluster.name} and {theirs} in {peer.name} ({_file(stack)}) are over a minor apart",
                fix="bring the older one up first, one minor at a time",
            )


def meshed(cluster: ClusterConfig, peers: Peers) -> dict[str, ClusterConfig]:
    """The other clusters that this one connects to, by stack."""
    wanted = cluster.mesh.clusters
    return {
        stack: peer
        for stack, peer in peers.items()
        if cluster.mesh.enabled and peer.mesh.enabled and (wanted is None or peer.name in wanted)
    }


def mesh_members_are_ready(cluster: ClusterConfig, peers: Peers) -> Iterator[Problem]:
    known = {peer.name: stack for stack, peer in peers.items()}
    for name in cluster.mesh.clusters or []:
        if name not in known:
            yield Problem(
                path="cluster.mesh.clusters",
                message=f"no other stack of the project describes a cluster {name}",
                fix=nearest(name, known, "remove it"),
            )
        elif not peers[known[name]].mesh.enabled:
            yield Problem(
                path="cluster.mesh.clusters",
                message=f"the mesh of {name} is off in {_file(known[name])}",
                fix=f"set mesh.enabled: true in {_file(known[name])}",
            )


def mesh_is_not_alone(cluster: ClusterConfig, peers: Peers) -> Iterator[Problem]:
    if cluster.mesh.enabled and not meshed(cluster, peers):
        yield Problem(
            path="cluster.mesh.enabled",
            message="is true, but no other stack has a mesh to connect to",
            fix="enable it in the other stack too",
            warning=True,
        )


def native_routing_covers_the_mesh(cluster: ClusterConfig, peers: Peers) -> Iterator[Problem]:
    native = cluster.cilium.native_routing_cidr
    for stack, peer in meshed(cluster, peers).items():
        if native and not peer.network.pods.subnet_of(native):
            yield Problem(
                path="cluster.cilium.native_routing_cidr",
                message=f"{native} does not cover the pod network {peer.network.pods} of {peer.name} ({_file(stack)})",
                fix=f"leave it out, or write {mesh_network(cluster, peers)}",
            )


def storage_comes_from_a_provider(cluster: ClusterConfig, peers: Peers) -> Iterator[Problem]:
    name = cluster.storage.provider_stack
    if name is None:
        return
    problem = None
    if cluster.storage.role != "consumer":
        problem = f"is given although storage.role is {cluster.storage.role}"
    elif name not in peers:
        problem = f"there is no {_file(name)}"
    elif peers[name].storage.role != "provider":
        problem = f"{_file(name)} has storage.role: {peers[name].storage.role}"
    if problem:
        providers = [stack for stack, peer in peers.items() if peer.storage.role == "provider"]
        fix = f"name {', '.join(providers)}, or remove it" if providers else "remove it"
        yield Problem(path="cluster.storage.provider_stack", message=problem, fix=fix)


def mesh_network(cluster: ClusterConfig, peers: Peers) -> IPv4Network:
    """The smallest network around the pods of all meshed clusters."""
    network = cluster.network.pods
    others = [peer.network.pods for peer in meshed(cluster, peers).values()]
    while not all(other.subnet_of(network) for other in others):
        network = network.supernet()
    return network
