"""Growing and moving disks, and writing cloud-init data anew."""

from __future__ import annotations

import re

from lab.proxmox import disks
from lab.proxmox.call import Call
from lab.proxmox.drive import Drive
from lab.proxmox.errors import OperationError, ParameterError
from lab.proxmox.property_string import size
from lab.proxmox.route import Route, needs, takes
from lab.proxmox.tasks import Task
from lab.proxmox.virtual_machine import VirtualMachine


def _disk(vm: VirtualMachine, option: str, verb: str) -> Drive:
    disk = vm.drives().get(option)
    if disk is None:
        raise OperationError(f"disk '{option}' does not exist")
    if disk.cdrom and not (verb == "move" and disk.cloud_init):
        raise OperationError(f"you can't {verb} a cdrom")
    return disk


async def resize(call: Call) -> str:
    vm, option, wanted = call.vm, call.params["disk"], call.params["size"]
    if not re.fullmatch(r"\+?\d+(?:\.\d+)?[KMGT]?", wanted):
        raise ParameterError(size="value does not match the regex pattern")

    async def work(_: Task) -> None:
        async with vm.locked():
            vm.check_lock()
            await _grow(call, vm, option, wanted)

    return await call.start("resize", vm.vmid, work)


async def _grow(call: Call, vm: VirtualMachine, option: str, wanted: str) -> None:
    disk = _disk(vm, option, "resize")
    datastore, volume = call.host.find(disk.file)
    call.check(f"/storage/{datastore.name}", "Datastore.AllocateSpace")
    target = size(wanted.removeprefix("+")) + (volume.size if wanted.startswith("+") else 0)
    if target < volume.size:
        raise OperationError("shrinking disks is not supported")
    if target > volume.size:
        await call.hypervisor.pace.wait("disk")
        await datastore.grow(volume, target)
        vm.config[option] = disk.placed(disk.file, target).render()


async def move(call: Call) -> str:
    vm, option = call.vm, call.params["disk"]
    target = call.host.datastore(call.params.get("storage", ""))
    call.check(f"/storage/{target.name}", "Datastore.AllocateSpace")
    target.require_images()
    disk = _disk(vm, option, "move")
    if disk.storage == target.name:
        raise OperationError("you can't move to the same storage with same format")

    async def work(_: Task) -> None:
        async with vm.locked():
            vm.check_lock()
            await call.hypervisor.pace.wait("disk")
            moved = await disks.copy(call.host, disk, target, vm.vmid)
            if call.flag("delete") or disk.cloud_init:
                await disks.free(call.host, disk.file)
            else:
                await disks.release(call.host, vm, disk)
            vm.config[option] = moved.render()

    return await call.start("qmmove", vm.vmid, work)


async def regenerate(call: Call) -> None:
    """The data is written from the configuration at every start; now is early, not different."""
    vm = call.vm
    vm.check_lock()
    if not any(disk.cloud_init for disk in vm.drives().values()):
        raise OperationError("No CloudInit drive found")


_QEMU = "/nodes/{node}/qemu/{vmid}"

ROUTES = (
    Route(
        method="PUT",
        path=f"{_QEMU}/resize",
        handler=resize,
        permission=needs("/vms/{vmid}", "VM.Config.Disk"),
        parameters=takes("disk! size! digest skiplock:boolean"),
    ),
    Route(
        method="POST",
        path=f"{_QEMU}/move_disk",
        handler=move,
        permission=needs("/vms/{vmid}", "VM.Config.Disk"),
        parameters=takes("disk! storage! delete:boolean digest format bwlimit:integer"),
    ),
    Route(
        method="PUT",
        path=f"{_QEMU}/cloudinit",
        handler=regenerate,
        permission=needs("/vms/{vmid}", "VM.Config.Cloudinit"),
    ),
)
