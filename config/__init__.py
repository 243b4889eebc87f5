"""The typed configuration of one stack; `load()` is its only entry."""

from .cilium import Bgp, BgpPeer, Cilium, Mesh, Pool
from .delivery import ChartSpec, CrdSet, Csi, Flux, Namespace, Sealing, Storage
from .load import Settings, load
from .model import ClusterConfig, Versions
from .network import ClusterNetwork
from .nodes import DataDisk, Node
from .proxmox import Host, Proxmox
from .secrets import Secrets
from .talos import KubeletMount, Patch, Patches, Talos
from .timing import DEADLINES, Recovery, Rollout, Timeouts
from .values import AddressRange

__all__ = [
    "DEADLINES",
    "AddressRange",
    "Bgp",
    "BgpPeer",
    "ChartSpec",
    "Cilium",
    "ClusterConfig",
    "ClusterNetwork",
    "CrdSet",
    "Csi",
    "DataDisk",
    "Flux",
    "Host",
    "KubeletMount",
    "Mesh",
    "Namespace",
    "Node",
    "Patch",
    "Patches",
    "Pool",
    "Proxmox",
    "Recovery",
    "Rollout",
    "Sealing",
    "Secrets",
    "Settings",
    "Storage",
    "Talos",
    "Timeouts",
    "Versions",
    "load",
]
