"""Who holds which addresses in a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address

from .model import ClusterConfig
from .values import AddressRange


@dataclass(frozen=True, kw_only=True)
class Claim:
    """Somebody's hold on one or several addresses."""

    path: str
    owner: str
    span: AddressRange

    def clash(self, other: Claim) -> str:
        """The addresses both hold, shortly."""
        first, last = max(self.span.first, other.span.first), min(self.span.last, other.span.last)
        return str(first) if first == last else f"{first}-{last}"


def node_claims(cluster: ClusterConfig) -> Iterator[Claim]:
    for name, node in cluster.nodes.items():
        yield _single(f"cluster.nodes.{name}.address", f"node {name}", node.address)


def pool_claims(cluster: ClusterConfig) -> Iterator[Claim]:
    for name, pool in cluster.lb_pools.items():
        yield Claim(path=f"cluster.lb_pools.{name}", owner=f"the pool {name}", span=pool.span)


def vip_claim(cluster: ClusterConfig) -> Iterator[Claim]:
    yield _single("cluster.network.vip", "the VIP", cluster.network.vip)


def infrastructure_claims(cluster: ClusterConfig) -> Iterator[Claim]:
    network = cluster.network
    yield _single("cluster.network.gateway", "the gateway", network.gateway)
    if network.dhcp_range:
        yield Claim(path="cluster.network.dhcp_range", owner="the DHCP range", span=network.dhcp_range)


def _single(path: str, owner: str, address: IPv4Address) -> Claim:
    return Claim(path=path, owner=owner, span=AddressRange(address, address))


CLAIMS: tuple[Callable[[ClusterConfig], Iterator[Claim]], ...] = (
    infrastructure_claims,
    vip_claim,
    node_claims,
    pool_claims,
)
