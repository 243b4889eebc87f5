"""The Proxmox site that the staged stacks expect: hosts, storages, bridges and tokens with the rights they document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lab.environment import Credentials
from lab.proxmox.access import Grant, Token
from lab.proxmox.datastore import StorageSpec, directory, thin_pool
from lab.proxmox.hypervisor import HostSpec
from lab.stackfile import StackFile

ROLES: dict[str, Sequence[str]] = {
    "GroundworkSystem": ("Sys.Audit", "Sys.Modify"),
    "GroundworkMachines": (
        "VM.Allocate", "VM.Audit", "VM.Config.CDROM", "VM.Config.CPU", "VM.Config.Cloudinit", "VM.Config.Disk",
        "VM.Config.HWType", "VM.Config.Memory", "VM.Config.Network", "VM.Config.Options", "VM.GuestAgent.Audit",
        "VM.PowerMgmt",
    ),
    "GroundworkStorage": (
        "Datastore.Allocate", "Datastore.AllocateSpace", "Datastore.AllocateTemplate", "Datastore.Audit",
    ),
    "GroundworkNetwork": ("SDN.Use",),
    "GroundworkCsi": ("VM.Audit", "VM.Config.Disk", "Datastore.Allocate", "Datastore.AllocateSpace", "Datastore.Audit"),
}  # fmt: skip
"""What the documentation tells an operator to grant, and no more: a program that wants more fails here first."""

PROVISION = (
    Grant(path="/", role="GroundworkSystem"),
    Grant(path="/vms", role="GroundworkMachines"),
    Grant(path="/storage", role="GroundworkStorage"),
    Grant(path="/sdn/zones", role="GroundworkNetwork"),
)


def tokens(credentials: Credentials) -> dict[str, Token]:
    grants = {
        credentials.proxmox: PROVISION,
        credentials.csi: (Grant(path="/", role="GroundworkCsi"),),
        credentials.admin: (Grant(path="/", role="Administrator"),),
    }
    pairs = {token.partition("="): given for token, given in grants.items()}
    return {identity: Token(secret=secret, grants=given) for (identity, _, secret), given in pairs.items()}


def hosts(stacks: Sequence[StackFile]) -> dict[str, HostSpec]:
    """Every host of every stack, each with everything its stacks name."""
    storages = {name: spec for file in stacks for name, spec in _storages(file.cluster).items()}
    bridges = sorted({str(file.cluster["proxmox"].get("bridge", "vmbr0")) for file in stacks})
    names = dict.fromkeys(name for file in stacks for name in file.hosts)
    return {name: HostSpec(storages=storages, bridges=bridges) for name in names}


def _storages(cluster: Mapping[str, Any]) -> dict[str, StorageSpec]:
    named = cluster["proxmox"].get("storage") or {}
    images, disks = str(named.get("images", "local")), str(named.get("disks", "local-lvm"))
    csi = str(((cluster.get("storage") or {}).get("csi") or {}).get("storage", disks))
    extra = {
        str(disk["storage"])
        for node in cluster["nodes"].values()
        for disk in node.get("disks") or ()
        if "storage" in disk
    }
    blocks = {disks, csi, *extra} - {images}
    return {images: directory(images=images == disks), **dict.fromkeys(sorted(blocks), thin_pool())}
