"""Rules on addresses and networks."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network
from itertools import combinations

from .claims import CLAIMS, infrastructure_claims, node_claims, pool_claims, vip_claim
from .errors import Problem
from .model import ClusterConfig
from .values import AddressRange


def addresses_are_used_once(cluster: ClusterConfig) -> Iterator[Problem]:
    claims = [claim for claimants in CLAIMS for claim in claimants(cluster)]
    free = free_address(cluster.network.subnet, [claim.span for claim in claims])
    for one, two in combinations(claims, 2):
        if one.span.overlaps(two.span):
            yield Problem(
                path=two.path,
                message=f"{one.clash(two)} is used by {one.owner} and by {two.owner}",
                fix=f"move one of the two; {free} is free" if free else "move one of the two",
            )


def free_address(subnet: IPv4Network, taken: list[AddressRange]) -> IPv4Address | None:
    return next((host for host in subnet.hosts() if not any(host in span for span in taken)), None)


def addresses_stand_in_the_subnet(cluster: ClusterConfig) -> Iterator[Problem]:
    subnet = cluster.network.subnet
    claims = [*infrastructure_claims(cluster), *vip_claim(cluster), *node_claims(cluster)]
    if cluster.cilium.announce == "l2":
        claims += pool_claims(cluster)
    for claim in claims:
        if not claim.span.within(subnet):
            yield Problem(
                path=claim.path,
                message=f"{_text(claim.span)} of {claim.owner} is outside the subnet {subnet}",
                fix=f"choose from {subnet[1]}-{subnet[-2]}, or correct network.subnet",
            )


def addresses_are_of_hosts(cluster: ClusterConfig) -> Iterator[Problem]:
    subnet = cluster.network.subnet
    for claim in [*infrastructure_claims(cluster), *vip_claim(cluster), *node_claims(cluster)]:
        for address, what in ((subnet[0], "network"), (subnet[-1], "broadcast")):
            if address in claim.span:
                yield Problem(
                    path=claim.path,
                    message=f"{address} of {claim.owner} is the {what} address of {subnet}",
                    fix=f"choose from {subnet[1]}-{subnet[-2]}",
                )


def _text(span: AddressRange) -> str:
    return str(span.first) if span.first == span.last else str(span)


def named_networks(cluster: ClusterConfig) -> dict[str, tuple[str, IPv4Network]]:
    """Path to what it is called and the network."""
    network = cluster.network
    return {
        "cluster.network.subnet": ("the node network", network.subnet),
        "cluster.network.pods": ("the pod network", network.pods),
        "cluster.network.services": ("the service network", network.services),
    }


def networks_are_disjoint(cluster: ClusterConfig) -> Iterator[Problem]:
    for (_, (one, left)), (path, (two, right)) in combinations(named_networks(cluster).items(), 2):
        if left.overlaps(right):
            yield Problem(
                path=path,
                message=f"{two} {right} overlaps {one} {left}",
                fix="give them networks of their own, such as 10.244.0.0/16 for pods and 10.245.0.0/16 for services",
            )


def networks_are_large_enough(cluster: ClusterConfig) -> Iterator[Problem]:
    network, nodes = cluster.network, len(cluster.nodes)
    if network.services.prefixlen > 24:
        yield Problem(
            path="cluster.network.services",
            message=f"{network.services} is too small for services and the DNS address, its tenth",
            fix="use a /24 or larger; /16 is usual",
        )
    if network.pods.prefixlen > 24 or 2 ** (24 - network.pods.prefixlen) < nodes:
        yield Problem(
            path="cluster.network.pods",
            message=f"{network.pods} has no /24 for each of {nodes} nodes",
            fix="use a larger network; /16 holds 256 nodes",
        )


def static_addresses_are_in_pools(cluster: ClusterConfig) -> Iterator[Problem]:
    pools = ", ".join(f"{name} ({pool.span})" for name, pool in cluster.lb_pools.items()) or "none"
    for name, address in cluster.lb_addresses.items():
        if not any(address in pool for pool in cluster.lb_pools.values()):
            yield Problem(
                path=f"cluster.lb_addresses.{name}",
                message=f"{address} is outside every pool: {pools}",
                fix="choose an address of a pool, or widen one",
            )


def static_addresses_are_used_once(cluster: ClusterConfig) -> Iterator[Problem]:
    for (one, left), (two, right) in combinations(cluster.lb_addresses.items(), 2):
        if left == right:
            yield Problem(
                path=f"cluster.lb_addresses.{two}",
                message=f"{left} is used by {one} and by {two}",
                fix="give each service an address of its own",
            )


def native_routing_covers_the_pods(cluster: ClusterConfig) -> Iterator[Problem]:
    native, pods = cluster.cilium.native_routing_cidr, cluster.network.pods
    if native and not pods.subnet_of(native):
        yield Problem(
            path="cluster.cilium.native_routing_cidr",
            message=f"{native} does not cover the pod network {pods}",
            fix=f"leave it out, or write {pods} or a network around it",
        )


def native_routing_spares_the_nodes(cluster: ClusterConfig) -> Iterator[Problem]:
    native, subnet = cluster.native_routing_cidr, cluster.network.subnet
    if native.overlaps(subnet):
        yield Problem(
            path="cluster.cilium.native_routing_cidr",
            message=f"{native} covers the node network {subnet}: pods would reach it without masquerading",
            fix="choose pod networks that lie closer together, away from the nodes",
            warning=True,
        )
