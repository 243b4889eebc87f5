"""What happens to volumes when drives are made, imported, detached, moved and freed."""

from __future__ import annotations

from collections.abc import Mapping

from lab.boot import Image
from lab.proxmox.datastore import Datastore, Volume
from lab.proxmox.drive import Drive
from lab.proxmox.errors import OperationError
from lab.proxmox.hypervisor import Host, Hypervisor
from lab.proxmox.remote_file import DISK_FORMATS, disk_size
from lab.proxmox.tasks import Task
from lab.proxmox.virtual_machine import VirtualMachine
from lab.proxmox.vm_options import UNUSED

CLOUD_INIT_SIZE = 4 << 20
_FIXED_SIZES = {"efidisk0": 4 << 20, "tpmstate0": 4 << 20}


async def create(host: Host, vmid: int, drives: Mapping[str, Drive], task: Task | None) -> dict[str, Drive]:
    """Make every drive real; when one fails, what was made before it is freed again."""
    made: dict[str, Drive] = {}
    try:
        for option, wanted in drives.items():
            made[option] = await _create_one(host, vmid, option, wanted)
            if task and made[option].file != wanted.file:
                task.print(f"{option}: successfully created disk '{made[option].render()}'")
    except OperationError:
        await _undo(host, drives, made)
        raise
    return made


async def _undo(host: Host, wanted: Mapping[str, Drive], made: Mapping[str, Drive]) -> None:
    for option, drive in made.items():
        if drive.file != wanted[option].file:
            datastore, volume = host.find(drive.file)
            datastore.volumes.pop(volume.name, None)


async def _create_one(host: Host, vmid: int, option: str, wanted: Drive) -> Drive:
    if wanted.empty:
        return wanted
    if wanted.new_cloud_init:
        return await _cloud_init(host.datastore(wanted.storage or ""), vmid, wanted)
    if wanted.new_size is None:
        _, volume = host.find(wanted.file)
        return wanted.placed(wanted.file, None if wanted.cdrom else volume.size)
    datastore = host.datastore(wanted.storage or "")
    size, image = _source(host, wanted) if wanted.import_from else (wanted.new_size, None)
    return await _allocate(datastore, vmid, wanted, _FIXED_SIZES.get(option, size), image)


def _source(host: Host, wanted: Drive) -> tuple[int, Image | None]:
    """The size and image of what a disk is imported from; it must be on this very host."""
    source = wanted.import_from or ""
    try:
        _, volume = host.find(source)
    except OperationError as error:
        raise OperationError(f"cannot import from '{source}' - {error.message}") from None
    if volume.content not in {"import", "images"} or volume.format not in DISK_FORMATS:
        raise OperationError(f"cannot import from '{source}' - wrong type '{volume.content}'")
    return disk_size(volume.image, volume.size), volume.image


async def _allocate(datastore: Datastore, vmid: int, wanted: Drive, size: int, image: Image | None) -> Drive:
    volume = Volume(
        name=datastore.next_disk_name(vmid),
        content="images",
        format=_format(datastore, wanted),
        size=size,
        used=image.size if image else 0,
        vmid=vmid,
        image=image,
    )
    await datastore.add(volume)
    return wanted.placed(datastore.volid(volume), size)


def _format(datastore: Datastore, wanted: Drive) -> str:
    asked = wanted.others.get("format", "raw")
    if datastore.spec.path is None and asked != "raw":
        raise OperationError(f"unsupported format '{asked}'")
    return asked


async def _cloud_init(datastore: Datastore, vmid: int, wanted: Drive) -> Drive:
    volume = Volume(
        name=datastore.file_name(vmid, f"vm-{vmid}-cloudinit"),
        content="images",
        format="raw",
        size=CLOUD_INIT_SIZE,
        used=CLOUD_INIT_SIZE,
        vmid=vmid,
    )
    await datastore.add(volume)
    return wanted.as_cdrom().placed(datastore.volid(volume), None)


async def release(host: Host, vm: VirtualMachine, drive: Drive) -> None:
    """A disk that is taken out stays as unusedN; a cloud-init drive is freed; an ISO is left alone."""
    if drive.empty or (drive.cdrom and not drive.cloud_init):
        return
    if drive.cloud_init:
        await free(host, drive.file)
        return
    number = next(number for number in range(256) if f"unused{number}" not in vm.config)
    vm.config[f"unused{number}"] = drive.file


async def free(host: Host, volid: str) -> None:
    try:
        datastore, volume = host.find(volid)
    except OperationError:
        return  # gone already: Proxmox warns and goes on
    await datastore.remove(volume)


async def free_own(host: Host, vm: VirtualMachine, *, unreferenced: bool) -> None:
    """What a destroyed machine owned; a volume of another owner that was attached to it stays."""
    named = {drive.file for drive in vm.drives().values()}
    named |= {value.partition(",")[0] for option, value in vm.config.items() if UNUSED.match(option)}
    for datastore in host.datastores.values():
        own = [volume for volume in datastore.volumes.values() if volume.vmid == vm.vmid]
        for volume in own:
            if unreferenced or datastore.volid(volume) in named:
                await datastore.remove(volume)


async def copy(host: Host, source: Drive, target: Datastore, vmid: int) -> Drive:
    """A full copy of a disk for a machine, with the image it came from."""
    _, volume = host.find(source.file)
    if source.cloud_init:
        return await _cloud_init(target, vmid, source)
    return await _allocate(target, vmid, source, volume.size, volume.image)


async def carry(hypervisor: Hypervisor, vm: VirtualMachine, target: str) -> None:
    """Local volumes follow their machine to another host; shared ones are there already."""
    old, new = hypervisor.host(vm.node), hypervisor.host(target)
    for drive in vm.drives().values():
        if drive.storage is None or drive.empty:
            continue
        datastore, volume = old.find(drive.file)
        if not datastore.spec.shared and volume.vmid == vm.vmid:
            await new.datastore(datastore.name).add(volume)
            await datastore.remove(volume)
