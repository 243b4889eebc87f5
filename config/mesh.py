"""Rules on what a cluster shares with the project's other clusters: the mesh and the storage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Network

from .errors import Problem, nearest, stack_file
from .model import ClusterConfig

Peers = Mapping[str, ClusterConfig]


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
                message=f"the mesh of {name} is off in {stack_file(known[name])}",
                fix=f"set mesh.enabled: true in {stack_file(known[name])}",
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
        pods = peer.network.pods
        if native and not pods.subnet_of(native):
            yield Problem(
                path="cluster.cilium.native_routing_cidr",
                message=f"{native} does not cover the pod network {pods} of {peer.name} ({stack_file(stack)})",
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
        problem = f"there is no {stack_file(name)}"
    elif peers[name].storage.role != "provider":
        problem = f"{stack_file(name)} has storage.role: {peers[name].storage.role}"
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
