"""The networks of one cluster."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import Annotated

from pydantic import Field

from .values import Address, Network, Range, Section, Word


class ClusterNetwork(Section):
    subnet: Network
    """The network the nodes stand in."""
    gateway: Address
    nameservers: Annotated[list[Address], Field(min_length=1)]
    ntp: Annotated[list[Word], Field(min_length=1)]
    vip: Address
    """Shared address of the Kubernetes API, carried by a control plane."""
    dhcp_range: Range | None = None
    """What a DHCP server hands out in the subnet, so that nothing static is put there."""
    pods: Network
    services: Network

    @property
    def dns_service(self) -> IPv4Address:
        """Address of cluster DNS: the tenth of the service network, as kubelets are told."""
        return self.services[10]
