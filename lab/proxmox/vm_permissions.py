"""Who may give a machine which options; what may depend on the value is looked up in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lab.proxmox.access import ROOT
from lab.proxmox.call import Call
from lab.proxmox.drive import Drive
from lab.proxmox.errors import OperationError, ParameterError
from lab.proxmox.network_device import network_device
from lab.proxmox.vm_options import needed_privileges
from lab.proxmox.volume_access import check_readable


def check_options(call: Call, vmid: int, options: Mapping[str, str | None], pool: str | None = None) -> None:
    for option, value in options.items():
        needed = needed_privileges(option, value)
        if needed == ("root",):
            if call.subject.partition("!")[0] != ROOT:
                raise OperationError(f"only root can set '{option}' config")
        elif needed:
            check_vm(call, vmid, pool, *needed)
        if option == "startup":
            call.check("/", "Sys.Modify")


def check_vm(call: Call, vmid: int, pool: str | None, *any_of: str) -> None:
    if pool and call.allows(f"/pool/{pool}", *any_of, any_of=True):
        return
    call.access.check_any(call.subject, f"/vms/{vmid}", *any_of)


def check_bridges(call: Call, options: Mapping[str, str]) -> None:
    for option, value in options.items():
        if not option.startswith("net"):
            continue
        device = network_device(option, value)
        if device.bridge:
            vlan = f"/{device.vlan}" if device.vlan else ""
            call.check(f"/sdn/zones/localnetwork/{device.bridge}{vlan}", "SDN.Use")


def check_storages(call: Call, vmid: int, drives: Mapping[str, Drive]) -> None:
    for option, drive in drives.items():
        if drive.file == "cdrom":  # the host's own drive
            call.check("/", "Sys.Console")
        if drive.empty or drive.new_cloud_init:
            continue
        if drive.storage is None:
            raise ParameterError.named({option: "Only root can pass arbitrary filesystem paths."})
        _check_volume(call, vmid, drive)
        if drive.import_from:
            _check_source(call, vmid, option, drive.import_from)


def _check_volume(call: Call, vmid: int, drive: Drive) -> None:
    if drive.new_size is not None:
        call.check(f"/storage/{drive.storage}", "Datastore.AllocateSpace")
        call.host.datastore(drive.storage or "").require_images()
        return
    try:
        datastore, volume = call.host.find(drive.file)
    except OperationError:
        raise OperationError(f"volume {drive.file} does not exist") from None
    check_readable(call, datastore, volume, vmid)


def _check_source(call: Call, vmid: int, option: str, source: str) -> None:
    if source.startswith("/"):
        raise OperationError("Only root can pass arbitrary filesystem paths.")
    store, _, name = source.partition(":")
    datastore = call.host.datastore(store)
    kind = name.partition("/")[0] if "/" in name else "images"
    if kind not in {"import", "images"} and not kind.isdigit():
        wrong = f"{source} has wrong type '{kind}' - needs to be 'images' or 'import'"
        raise ParameterError.named({option: wrong})
    volume = datastore.volumes.get(name)
    if volume:
        check_readable(call, datastore, volume, vmid)


def check_drive_changes(call: Call, vmid: int, drives: Iterable[Drive]) -> None:
    """For drives that are changed or taken out of a machine that exists."""
    for drive in drives:
        if drive.cloud_init or drive.new_cloud_init:
            call.check(f"/vms/{vmid}", "VM.Config.Cloudinit", "VM.Config.CDROM")
        else:
            call.check(f"/vms/{vmid}", "VM.Config.CDROM" if drive.cdrom else "VM.Config.Disk")
