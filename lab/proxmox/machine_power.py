"""Switching machines on and off, and what each finds when its power comes on."""

from __future__ import annotations

import time

from lab.boot import Boot, Image
from lab.proxmox.drive import Drive
from lab.proxmox.errors import OperationError
from lab.proxmox.hypervisor import Host, Hypervisor
from lab.proxmox.network_device import AddressConfig, NetworkDevice, address_config, network_device
from lab.proxmox.virtual_machine import VirtualMachine


async def start(hypervisor: Hypervisor, vm: VirtualMachine) -> None:
    vm.check_lock()
    if vm.template:
        raise OperationError("you can't start a vm if it's a template")
    if vm.running:
        raise OperationError(f"VM {vm.vmid} already running")
    vm.apply_pending()
    boot = boot_of(hypervisor.host(vm.node), vm)
    vm.running, vm.started, vm.pid = True, time.monotonic(), 10_000 + vm.vmid
    await hypervisor.power.power_on(boot)


async def stop(hypervisor: Hypervisor, vm: VirtualMachine, *, graceful: bool) -> None:
    if not vm.running:
        return
    await hypervisor.power.power_off(vm.vmid, graceful=graceful)
    vm.running, vm.pid = False, None
    vm.apply_pending()


async def reset(hypervisor: Hypervisor, vm: VirtualMachine) -> None:
    """The reset button: the same virtual hardware starts over, nothing pending is applied."""
    if not vm.running:
        raise OperationError(f"VM {vm.vmid} not running")
    await hypervisor.power.power_off(vm.vmid, graceful=False)
    await hypervisor.power.power_on(boot_of(hypervisor.host(vm.node), vm))


async def reboot(hypervisor: Hypervisor, vm: VirtualMachine) -> None:
    await stop(hypervisor, vm, graceful=True)
    await start(hypervisor, vm)


def boot_of(host: Host, vm: VirtualMachine) -> Boot:
    """Everything from the machine's real configuration and the volumes on its own host."""
    _check_media(host, vm)
    device = _device(host, vm)
    addresses = _addresses(vm, device)
    return Boot(
        vmid=vm.vmid,
        name=vm.name,
        host=host.name,
        mac=device.mac if device else "",
        bridge=(device.bridge or "") if device else "",
        vlan=device.vlan if device else None,
        cores=vm.cores,
        memory=vm.memory,
        disks={option: host.find(drive.file)[1].size for option, drive in _disks(vm).items()},
        image=_image(host, vm),
        address=addresses.address,
        gateway=addresses.gateway,
    )


def _disks(vm: VirtualMachine) -> dict[str, Drive]:
    firmware = {"efidisk0", "tpmstate0"}
    return {
        option: drive
        for option, drive in vm.drives().items()
        if not drive.cdrom and not drive.empty and option not in firmware
    }


def _check_media(host: Host, vm: VirtualMachine) -> None:
    for drive in vm.drives().values():
        if not drive.empty:
            host.find(drive.file)


def _device(host: Host, vm: VirtualMachine) -> NetworkDevice | None:
    for option in sorted(vm.config):
        if option.startswith("net"):
            bridge = network_device(option, vm.config[option]).bridge
            if bridge and bridge not in host.spec.bridges:
                raise OperationError(f"bridge '{bridge}' does not exist")
    return network_device("net0", vm.config["net0"]) if "net0" in vm.config else None


def _addresses(vm: VirtualMachine, device: NetworkDevice | None) -> AddressConfig:
    """Cloud-init data reaches the machine on its cloud-init drive alone, and counts on a connected card alone."""
    delivered = any(drive.cloud_init for drive in vm.drives().values())
    if not delivered or "ipconfig0" not in vm.config or device is None or not device.connected:
        return AddressConfig(address=None, gateway=None)
    return address_config("ipconfig0", vm.config["ipconfig0"])


def _image(host: Host, vm: VirtualMachine) -> Image | None:
    """The firmware goes down the boot order to the first disk with something on it."""
    disks = _disks(vm)
    for option in vm.boot_order():
        if option in disks:
            image = host.find(disks[option].file)[1].image
            if image:
                return image
    return None
