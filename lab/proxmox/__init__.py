"""An emulated Proxmox VE API: stateful, several hosts, with tasks, storages, tokens and privileges."""

from __future__ import annotations

from lab.proxmox.access import Grant, Token
from lab.proxmox.application import application
from lab.proxmox.datastore import StorageSpec, directory, thin_pool
from lab.proxmox.hypervisor import HostSpec, Hypervisor
from lab.proxmox.remote_file import Fetch, RemoteFile
from lab.proxmox.server import options, server

__all__ = [
    "Fetch",
    "Grant",
    "HostSpec",
    "Hypervisor",
    "RemoteFile",
    "StorageSpec",
    "Token",
    "application",
    "directory",
    "options",
    "server",
    "thin_pool",
]
