"""The guest agent, which answers when the machine runs one."""

from __future__ import annotations

from ipaddress import IPv4Interface
from typing import Any

from lab.proxmox.call import Call
from lab.proxmox.errors import OperationError
from lab.proxmox.network_device import network_device
from lab.proxmox.route import Route, needs
from lab.proxmox.virtual_machine import VirtualMachine


def _addresses(call: Call) -> tuple[VirtualMachine, list[str]]:
    vm = call.vm
    if not vm.running:
        raise OperationError(f"VM {vm.vmid} is not running")
    if not vm.agent_enabled:
        raise OperationError("No QEMU guest agent configured")
    addresses = call.hypervisor.power.addresses(vm.vmid)
    if not addresses:
        raise OperationError("QEMU guest agent is not running")
    return vm, addresses


async def interfaces(call: Call) -> dict[str, Any]:
    vm, addresses = _addresses(call)
    mac = network_device("net0", vm.config["net0"]).mac.lower() if "net0" in vm.config else "00:00:00:00:00:00"
    loopback = _interface("lo", "00:00:00:00:00:00", ["127.0.0.1/8"])
    return {"result": [loopback, _interface("eth0", mac, addresses)]}


def _interface(name: str, mac: str, addresses: list[str]) -> dict[str, Any]:
    parsed = [IPv4Interface(address) for address in addresses]
    return {
        "name": name,
        "hardware-address": mac,
        "ip-addresses": [
            {"ip-address": str(one.ip), "prefix": one.network.prefixlen, "ip-address-type": "ipv4"} for one in parsed
        ],
    }


async def ping(call: Call) -> dict[str, Any]:
    _addresses(call)
    return {"result": {}}


_MAY_ASK = needs("/vms/{vmid}", "VM.GuestAgent.Audit", "VM.GuestAgent.Unrestricted", any_of=True)
_AGENT = "/nodes/{node}/qemu/{vmid}/agent"

ROUTES = (
    Route(method="GET", path=f"{_AGENT}/network-get-interfaces", handler=interfaces, permission=_MAY_ASK),
    Route(method="POST", path=f"{_AGENT}/ping", handler=ping, permission=_MAY_ASK, reads=True),
)
