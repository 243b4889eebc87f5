"""What a hypervisor hands to a machine when it is switched on."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import IPv4Interface
from typing import Protocol


@dataclass(frozen=True, kw_only=True)
class Image:
    """The image a boot disk was imported from."""

    url: str
    """Where it was downloaded from, schematic and version included."""
    filename: str
    size: int
    whole: bool = True
    """False when the download was cut short."""


@dataclass(frozen=True, kw_only=True)
class Boot:
    """One virtual machine at the moment its power comes on."""

    vmid: int
    name: str
    host: str
    mac: str
    bridge: str
    vlan: int | None
    cores: int
    memory: int
    """In MiB."""
    disks: dict[str, int] = field(default_factory=dict)
    """Size in bytes by interface, such as scsi0."""
    image: Image | None
    """None when the boot disk is blank."""
    address: IPv4Interface | None
    """From the cloud-init data; None when there is none."""
    gateway: str | None = None


class Power(Protocol):
    """What is plugged into the hypervisor: the machines."""

    async def power_on(self, boot: Boot) -> None:
        """Start the machine; returns at once, as a hypervisor does."""

    async def power_off(self, vmid: int, *, graceful: bool) -> None:
        """Stop the machine; a machine that is off already stays off."""

    def addresses(self, vmid: int) -> list[str]:
        """IPv4 addresses in CIDR form that the guest agent reports; empty while it does not run."""

    async def erase(self, vmid: int) -> None:
        """The virtual machine was destroyed, disks and all; one made later with the same id starts blank."""
