"""The pod network, its load balancer pools and the mesh."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from typing import Annotated, Any, Literal, cast

from pydantic import Field, model_validator

from .nodes import LabelKey, LabelValue
from .values import Address, AddressRange, Integer, Network, Range, Section, refuse

Asn = Annotated[Integer, Field(ge=1, le=4_294_967_295)]


class BgpPeer(Section):
    address: Address
    asn: Asn


class Bgp(Section):
    local_asn: Asn
    peers: Annotated[list[BgpPeer], Field(min_length=1)]


class Cilium(Section):
    id: Annotated[Integer, Field(ge=1, le=255)]
    """Identity of the cluster in a mesh; changing it restarts every workload."""
    install: Literal["helm", "inline"] = "helm"
    owner: Literal["pulumi", "flux"] = "pulumi"
    gateway_api: bool = True
    announce: Literal["l2", "bgp"] = "l2"
    bgp: Bgp | None = None
    native_routing_cidr: Network | None = None
    """What is routed without masquerading; the pod network, or what covers all meshed ones, unless said otherwise."""
    bpf_masquerade: bool = False
    host_legacy_routing: bool = True
    encryption: Literal["none", "wireguard"] = "none"
    repository: Annotated[str, Field(pattern=r"^(https|oci)://\S+$")] = "https://helm.cilium.io"
    values: dict[str, Any] = Field(default_factory=dict)
    """Chart values merged last."""


class Pool(Section):
    """Addresses for services of type LoadBalancer: a range or a network."""

    range: Range | None = None
    cidr: Network | None = None
    selector: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    """Labels a service must carry to draw from this pool; none means any service."""

    @model_validator(mode="after")
    def _one_of_two(self) -> Pool:
        if (self.range is None) == (self.cidr is None):
            raise refuse("a pool is given by exactly one of range and cidr", "keep one of the two")
        return self

    @property
    def span(self) -> AddressRange:
        return self.range or AddressRange.of(cast(IPv4Network, self.cidr))

    def __contains__(self, address: IPv4Address) -> bool:
        return address in self.span


class Mesh(Section):
    enabled: bool = False
    clusters: list[str] | None = None
    """Cluster names to connect to; every other stack with an enabled mesh unless said otherwise."""
    max_connected_clusters: Literal[255, 511] = 255
