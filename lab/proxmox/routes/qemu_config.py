"""Reading and changing a machine's configuration."""

from __future__ import annotations

from typing import Any

from lab.proxmox import disks, vm_options
from lab.proxmox.call import Call
from lab.proxmox.drive import Drive, drive
from lab.proxmox.errors import OperationError, ParameterError
from lab.proxmox.route import Route, needs, takes
from lab.proxmox.routes.qemu import normalise
from lab.proxmox.tasks import Task
from lab.proxmox.virtual_machine import VirtualMachine
from lab.proxmox.vm_permissions import check_bridges, check_drive_changes, check_options, check_storages

_ASIDE = ("node", "vmid", "delete", "digest", "skiplock", "revert", "force", "background_delay")


async def read(call: Call) -> dict[str, Any]:
    return call.vm.read(current=call.flag("current"))


async def update(call: Call) -> None:
    """PUT waits for the change; POST makes a task of it."""
    await _change(call, *_changes(call))


async def update_in_background(call: Call) -> str:
    options, deleted = _changes(call)

    async def work(_: Task) -> None:
        await _change(call, options, deleted)

    return await call.start("qmconfig", call.vmid, work)


def _changes(call: Call) -> tuple[dict[str, str], list[str]]:
    vm = call.vm
    options = {name: value for name, value in call.params.items() if name not in _ASIDE}
    deleted = vm_options.split_list(call.params.get("delete", ""))
    _check_sense(options, deleted)
    vm_options.check(options)
    check_options(call, vm.vmid, dict.fromkeys(deleted))
    check_options(call, vm.vmid, dict(options))
    check_storages(call, vm.vmid, _drives(options))
    check_bridges(call, options)
    touched = {option for option in [*options, *deleted] if vm_options.DRIVE.match(option)}
    old = [vm.drives()[option] for option in touched if option in vm.config]
    check_drive_changes(call, vm.vmid, [*old, *_drives(options).values()])
    return normalise(options), deleted


def _check_sense(options: dict[str, str], deleted: list[str]) -> None:
    for option in deleted:
        if option in options:
            raise ParameterError(delete=f"you can't use '-{option}' and -delete {option}' at the same time")
        if not vm_options.known(option):
            raise ParameterError(delete=f"unknown option '{option}'")


def _drives(options: dict[str, str]) -> dict[str, Drive]:
    return {option: drive(option, value) for option, value in options.items() if vm_options.DRIVE.match(option)}


async def _change(call: Call, options: dict[str, str], deleted: list[str]) -> None:
    vm = call.vm
    async with vm.locked():
        vm.check_lock()
        if "digest" in call.params and call.params["digest"] != vm.read(current=False)["digest"]:
            raise OperationError("checksum mismatch (file change by other user?)")
        for option in deleted:
            await _delete(call, vm, option)
        made = await disks.create(call.host, vm.vmid, _drives(options), None)
        for option, value in options.items():
            await _set(call, vm, option, made[option].render() if option in made else value)


async def _delete(call: Call, vm: VirtualMachine, option: str) -> None:
    value = vm.config.get(option)
    vm.pending.pop(option, None)
    if value is None:
        return
    if vm_options.UNUSED.match(option):
        await disks.free(call.host, value)
    if vm_options.DRIVE.match(option):
        vm.check_protection(f"can't remove drive '{option}'")
        await disks.release(call.host, vm, drive(option, value))
    if vm.running and not vm_options.live(option):
        vm.pending[option] = None
        return
    del vm.config[option]
    _leave_boot_order(vm, option)


def _leave_boot_order(vm: VirtualMachine, option: str) -> None:
    order = vm.boot_order()
    if option in order:
        vm.config["boot"] = "order=" + ";".join(device for device in order if device != option)


async def _set(call: Call, vm: VirtualMachine, option: str, value: str) -> None:
    old = vm.config.get(option)
    if option == "boot":
        _check_boot_order(vm, value)
    if old and vm_options.DRIVE.match(option) and drive(option, old).file != drive(option, value).file:
        await disks.release(call.host, vm, drive(option, old))
    if vm.running and not vm_options.live(option) and value != old:
        vm.pending[option] = value
    else:
        vm.config[option] = value
        vm.pending.pop(option, None)


def _check_boot_order(vm: VirtualMachine, value: str) -> None:
    devices = vm_options.split_list(value.removeprefix("order="))
    for device in devices if value.startswith("order=") else []:
        if device not in vm.merged():
            raise OperationError(f"invalid bootorder: device '{device}' does not exist'")


_MAY_CONFIGURE = needs(
    "/vms/{vmid}",
    "VM.Config.Disk",
    "VM.Config.CDROM",
    "VM.Config.CPU",
    "VM.Config.Memory",
    "VM.Config.Network",
    "VM.Config.HWType",
    "VM.Config.Options",
    "VM.Config.Cloudinit",
    any_of=True,
)
_PATH = "/nodes/{node}/qemu/{vmid}/config"
_COMMON = "delete digest skiplock:boolean revert force:boolean"

ROUTES = (
    Route(
        method="GET",
        path=_PATH,
        handler=read,
        permission=needs("/vms/{vmid}", "VM.Audit"),
        parameters=takes("current:boolean snapshot"),
    ),
    Route(
        method="PUT",
        path=_PATH,
        handler=update,
        permission=_MAY_CONFIGURE,
        parameters=takes(_COMMON),
        also=vm_options.known,
    ),
    Route(
        method="POST",
        path=_PATH,
        handler=update_in_background,
        permission=_MAY_CONFIGURE,
        parameters=takes(f"{_COMMON} background_delay:integer"),
        also=vm_options.known,
    ),
)
