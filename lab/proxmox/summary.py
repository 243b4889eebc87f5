"""Hosts, storages and machines in a few numbers, as the lists show them."""

from __future__ import annotations

import time
from typing import Any

from lab.proxmox.datastore import Datastore
from lab.proxmox.hypervisor import Host
from lab.proxmox.virtual_machine import VirtualMachine

_STARTED = time.monotonic()


def host_summary(host: Host, *, audited: bool) -> dict[str, Any]:
    """Without Sys.Audit on the host only its name and that it is there."""
    seen: dict[str, Any] = {"node": host.name, "status": "online"}
    if not audited:
        return seen
    return seen | {
        "cpu": 0.02,
        "level": "",
        "maxcpu": host.spec.cores,
        "maxmem": host.spec.memory,
        "mem": host.spec.memory // 8,
        "uptime": 86_400 + int(time.monotonic() - _STARTED),
    }


def storage_summary(datastore: Datastore) -> dict[str, Any]:
    return {
        "type": datastore.spec.kind,
        "content": ",".join(sorted(datastore.spec.content)),
        "active": 1,
        "enabled": 1,
        "shared": int(datastore.spec.shared),
        "total": datastore.spec.total,
        "used": datastore.used,
        "avail": datastore.available,
    }


def vm_summary(host: Host, vm: VirtualMachine) -> dict[str, Any]:
    summary: dict[str, Any] = {
        "vmid": vm.vmid,
        "name": vm.name,
        "status": "running" if vm.running else "stopped",
        "qmpstatus": "running" if vm.running else "stopped",
        "cpus": vm.cores,
        "cpu": 0.01 if vm.running else 0,
        "maxmem": vm.memory << 20,
        "mem": vm.memory << 18 if vm.running else 0,
        "maxdisk": _boot_disk_size(host, vm),
        "disk": 0,
        "uptime": vm.uptime,
        "netin": 0,
        "netout": 0,
        "diskread": 0,
        "diskwrite": 0,
    }
    optional = {"pid": vm.pid, "lock": vm.lock, "tags": vm.config.get("tags"), "template": int(vm.template) or None}
    return summary | {key: value for key, value in optional.items() if value is not None}


def _boot_disk_size(host: Host, vm: VirtualMachine) -> int:
    drives = vm.drives()
    for option in vm.boot_order():
        drive = drives.get(option)
        if drive and not drive.empty and not drive.cdrom:
            return host.find(drive.file)[1].size
    return 0
