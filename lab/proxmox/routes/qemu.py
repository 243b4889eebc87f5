"""Listing, creating and destroying virtual machines."""

from __future__ import annotations

import time
import uuid
from typing import Any

from lab.proxmox import disks, machine_power
from lab.proxmox.call import Call
from lab.proxmox.drive import Drive, drive
from lab.proxmox.errors import ApiError, OperationError
from lab.proxmox.network_device import address_config, network_device
from lab.proxmox.route import Route, needs, takes
from lab.proxmox.summary import vm_summary
from lab.proxmox.tasks import Task
from lab.proxmox.virtual_machine import VirtualMachine
from lab.proxmox.vm_options import DRIVE, check, known, split_list, unique_tags
from lab.proxmox.vm_permissions import check_bridges, check_options, check_storages, check_vm

_NOT_EMULATED = ("archive", "force", "ha-managed", "live-restore")
_ASIDE = ("node", "vmid", "pool", "start", "storage", "unique", "bwlimit", "import-working-storage")


async def index(call: Call) -> list[dict[str, Any]]:
    vms = [vm for _, vm in sorted(call.hypervisor.vms.items()) if vm.node == call.node]
    return [vm_summary(call.host, vm) for vm in vms if call.allows(f"/vms/{vm.vmid}", "VM.Audit")]


async def create(call: Call) -> str:
    asked = [name for name in _NOT_EMULATED if call.flag(name)]
    if asked:
        raise ApiError(501, f"parameter '{asked[0]}' is not emulated")
    options = {name: value for name, value in call.params.items() if name not in _ASIDE and name not in _NOT_EMULATED}
    check(options)
    _check_allowed(call, options)
    normalised = normalise(options)
    call.hypervisor.check_unused(call.vmid, f"unable to create VM {call.vmid} - ")
    vm = VirtualMachine(vmid=call.vmid, node=call.node, lock="create")
    call.hypervisor.vms[call.vmid] = vm

    async def work(task: Task) -> None:
        async with vm.locked(1.0):
            await _create(call, vm, normalised, task)
        if call.flag("start"):
            await machine_power.start(call.hypervisor, vm)

    return await call.start("qmcreate", call.vmid, work)


def _check_allowed(call: Call, options: dict[str, str]) -> None:
    pool = call.params.get("pool")
    if pool and pool not in call.hypervisor.pools:
        raise ApiError(403, f"Permission check failed (pool '{pool}' does not exist)")
    anywhere = [f"/vms/{call.vmid}"] + ([f"/pool/{pool}"] if pool else [])
    if not any(call.allows(path, "VM.Allocate") for path in anywhere):
        raise ApiError(403, "Permission check failed")
    if call.flag("start"):
        check_vm(call, call.vmid, pool, "VM.PowerMgmt")
    check_storages(call, call.vmid, _drives(options))
    check_options(call, call.vmid, options, pool)
    check_bridges(call, options)


def _drives(options: dict[str, str]) -> dict[str, Drive]:
    return {option: drive(option, value) for option, value in sorted(options.items()) if DRIVE.match(option)}


def normalise(options: dict[str, str]) -> dict[str, str]:
    """Options as they are kept: cards with an address, tags sorted, addresses checked."""
    kept = dict(options)
    for option, value in options.items():
        if option.startswith("net"):
            kept[option] = network_device(option, value).render()
        elif option.startswith("ipconfig"):
            address_config(option, value)
        elif option == "tags":
            kept[option] = unique_tags(split_list(value))
    return kept


async def _create(call: Call, vm: VirtualMachine, options: dict[str, str], task: Task) -> None:
    try:
        wanted = _drives(options)
        if wanted:
            await call.hypervisor.pace.wait("disk")
        made = await disks.create(call.host, vm.vmid, wanted, task)
    except OperationError as error:
        call.hypervisor.forget(vm)
        raise OperationError(f"unable to create VM {vm.vmid} - {error.message}") from None
    vm.config = {**_generated(options), **options, **{option: disk.render() for option, disk in made.items()}}
    vm.lock = None
    if "pool" in call.params:
        call.hypervisor.pools[call.params["pool"]].vms.add(vm.vmid)


def _generated(options: dict[str, str]) -> dict[str, str]:
    """What Proxmox adds when the caller does not say."""
    cards = [option for option in options if option.startswith("net")]
    bootable = [option for option, disk in _drives(options).items() if not disk.new_cloud_init]
    return {
        "meta": f"creation-qemu=10.1.2,ctime={int(time.time())}",
        "smbios1": f"uuid={uuid.uuid4()}",
        "vmgenid": str(uuid.uuid4()),
        "boot": f"order={';'.join(bootable[:1] + sorted(cards)[:1])}",
    }


async def destroy(call: Call) -> str:
    vm = call.vm
    _check_destroyable(vm)

    async def work(_: Task) -> None:
        async with vm.locked():
            vm.check_lock()
            _check_destroyable(vm)
            host = call.hypervisor.host(vm.node)
            await disks.free_own(host, vm, unreferenced=call.flag("destroy-unreferenced-disks"))
            await call.hypervisor.power.erase(vm.vmid)
            call.hypervisor.forget(vm)

    return await call.start("qmdestroy", call.vmid, work)


def _check_destroyable(vm: VirtualMachine) -> None:
    vm.check_protection(f"can't remove VM {vm.vmid}")
    if vm.running:
        raise OperationError(f"VM {vm.vmid} is running - destroy failed")


ROUTES = (
    Route(method="GET", path="/nodes/{node}/qemu", handler=index, parameters=takes("full:boolean")),
    Route(
        method="POST",
        path="/nodes/{node}/qemu",
        handler=create,
        parameters=takes(
            "vmid:integer! archive force:boolean ha-managed:boolean live-restore:boolean pool start:boolean storage"
            " unique:boolean bwlimit:integer import-working-storage"
        ),
        also=known,
    ),
    Route(
        method="DELETE",
        path="/nodes/{node}/qemu/{vmid}",
        handler=destroy,
        permission=needs("/vms/{vmid}", "VM.Allocate"),
        parameters=takes("destroy-unreferenced-disks:boolean purge:boolean skiplock:boolean"),
    ),
)
