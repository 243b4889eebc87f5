"""Cloning, converting and moving whole machines."""

from __future__ import annotations

import uuid
from typing import Any

from lab.proxmox import disks
from lab.proxmox.call import Call
from lab.proxmox.errors import OperationError, ParameterError
from lab.proxmox.network_device import NetworkDevice, network_device, random_mac
from lab.proxmox.route import Route, needs, takes
from lab.proxmox.tasks import Task
from lab.proxmox.virtual_machine import VirtualMachine
from lab.proxmox.vm_permissions import check_vm


async def clone(call: Call) -> str:
    source, newid = call.vm, call.number("newid", 0)
    target = call.params.get("target", call.node)
    _check_clone(call, source, newid, target)
    copy = VirtualMachine(vmid=newid, node=call.node, lock="clone")
    call.hypervisor.vms[newid] = copy

    async def work(_: Task) -> None:
        try:
            await call.hypervisor.pace.wait("disk")
            copy.config = await _cloned(call, source, newid)
        except OperationError as error:
            call.hypervisor.forget(copy)
            raise OperationError(f"clone failed: {error.message}") from None
        copy.lock, copy.node = None, target
        if "pool" in call.params:
            call.hypervisor.pools[call.params["pool"]].vms.add(newid)

    return await call.start("qmclone", source.vmid, work)


def _check_clone(call: Call, source: VirtualMachine, newid: int, target: str) -> None:
    pool = call.params.get("pool")
    check_vm(call, newid, pool, "VM.Allocate")
    source.check_lock()
    if not source.template and not call.flag("full", default=True):
        raise OperationError("Linked clone feature is not supported for drive 'scsi0'")
    if "storage" in call.params:
        call.check(f"/storage/{call.params['storage']}", "Datastore.AllocateSpace")
        call.host.datastore(call.params["storage"]).require_images()
    if target != call.node:
        _require_shared(call, source, target)
    call.hypervisor.check_unused(newid, f"unable to create VM {newid}: ")


def _require_shared(call: Call, source: VirtualMachine, target: str) -> None:
    call.hypervisor.host(target)
    for disk in source.drives().values():
        if disk.storage and not call.host.datastore(disk.storage).spec.shared:
            raise OperationError(f"can't clone VM to node '{target}' (VM uses local storage)")


async def _cloned(call: Call, source: VirtualMachine, newid: int) -> dict[str, str]:
    """The same machine with disks, cards and an identity of its own."""
    left = {"template", "protection", "lock", "name", "description"}
    config = {option: value for option, value in source.config.items() if option not in left}
    for option, disk in source.drives().items():
        if not disk.empty and (disk.cloud_init or not disk.cdrom):
            store = call.host.datastore(call.params.get("storage", disk.storage or ""))
            config[option] = (await disks.copy(call.host, disk, store, newid)).render()
    for option in [option for option in config if option.startswith("net")]:
        device = network_device(option, config[option])
        config[option] = NetworkDevice(model=device.model, mac=random_mac(), others=device.others).render()
    named = {name: call.params[name] for name in ("name", "description") if name in call.params}
    identity = {"smbios1": f"uuid={uuid.uuid4()}", "vmgenid": str(uuid.uuid4())}
    return {**config, "name": f"Copy-of-VM-{source.name}", **named, **identity}


async def template(call: Call) -> str:
    vm = call.vm
    if vm.template:
        raise OperationError("you can't convert a template to a template")
    if vm.running:
        raise OperationError("you can't convert a VM to template if VM is running")

    async def work(_: Task) -> None:
        async with vm.locked():
            vm.config["template"] = "1"
            for option, disk in vm.drives().items():
                if not disk.empty and not disk.cdrom:
                    _make_base(call, vm, option)

    return await call.start("qmtemplate", vm.vmid, work)


def _make_base(call: Call, vm: VirtualMachine, option: str) -> None:
    disk = vm.drives()[option]
    datastore, volume = call.host.find(disk.file)
    del datastore.volumes[volume.name]
    volume.name = volume.name.replace(f"vm-{vm.vmid}-", f"base-{vm.vmid}-")
    datastore.volumes[volume.name] = volume
    vm.config[option] = disk.placed(datastore.volid(volume), volume.size).render()


async def migration_facts(call: Call) -> dict[str, Any]:
    vm = call.vm
    local = [disk for disk in vm.drives().values() if disk.storage and not _shared(call, disk.storage)]
    others = [name for name in call.hypervisor.hosts if name != call.node]
    return {
        "running": int(vm.running),
        "allowed_nodes": others,
        "local_disks": [{"volid": disk.file, "cdrom": int(disk.cdrom)} for disk in local],
        "local_resources": [],
        "mapped-resources": [],
        "mapped-resource-info": {},
        "has-dbus-vmstate": 0,
    }


def _shared(call: Call, storage: str) -> bool:
    return call.host.datastore(storage).spec.shared


async def migrate(call: Call) -> str:
    vm, target = call.vm, call.params["target"]
    if target == call.node:
        raise ParameterError(target="target is local node.")
    host = call.hypervisor.host(target)
    if vm.running and not call.flag("online"):
        raise OperationError("can't migrate running VM without --online")

    async def work(_: Task) -> None:
        async with vm.locked():
            vm.check_lock()
            local = [disk for disk in vm.drives().values() if disk.storage and not _shared(call, disk.storage)]
            if vm.running and local and not call.flag("with-local-disks"):
                raise OperationError(
                    "Problem found while scanning volumes - can't live migrate attached local disks"
                    " without with-local-disks option"
                )
            for disk in local:
                host.datastore(disk.storage or "")
            await call.hypervisor.pace.wait("disk")
            await disks.carry(call.hypervisor, vm, target)
            vm.node = target

    return await call.start("qmigrate", vm.vmid, work)


_QEMU = "/nodes/{node}/qemu/{vmid}"
_MAY_MIGRATE = needs("/vms/{vmid}", "VM.Migrate")

ROUTES = (
    Route(
        method="POST",
        path=f"{_QEMU}/clone",
        handler=clone,
        permission=needs("/vms/{vmid}", "VM.Clone"),
        parameters=takes("newid:integer! name description full:boolean pool storage target format bwlimit:integer"),
    ),
    Route(
        method="POST",
        path=f"{_QEMU}/template",
        handler=template,
        permission=needs("/vms/{vmid}", "VM.Allocate"),
    ),
    Route(
        method="GET",
        path=f"{_QEMU}/migrate",
        handler=migration_facts,
        permission=_MAY_MIGRATE,
        parameters=takes("target"),
    ),
    Route(
        method="POST",
        path=f"{_QEMU}/migrate",
        handler=migrate,
        permission=_MAY_MIGRATE,
        parameters=takes("target! online:boolean with-local-disks:boolean targetstorage bwlimit:integer"),
    ),
)
