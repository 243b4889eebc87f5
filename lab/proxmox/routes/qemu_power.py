"""Switching machines on and off."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from lab.proxmox import machine_power
from lab.proxmox.call import Call
from lab.proxmox.errors import OperationError
from lab.proxmox.hypervisor import Hypervisor
from lab.proxmox.route import Handler, Route, needs, takes
from lab.proxmox.summary import vm_summary
from lab.proxmox.tasks import Task
from lab.proxmox.virtual_machine import VirtualMachine

Action = Callable[[Hypervisor, VirtualMachine], Awaitable[None]]


async def current(call: Call) -> dict[str, Any]:
    vm = call.vm
    return vm_summary(call.host, vm) | {"ha": {"managed": 0}} | ({"agent": 1} if vm.agent_enabled else {})


async def _stop(hypervisor: Hypervisor, vm: VirtualMachine) -> None:
    await machine_power.stop(hypervisor, vm, graceful=False)


async def _shut_down(hypervisor: Hypervisor, vm: VirtualMachine) -> None:
    await machine_power.stop(hypervisor, vm, graceful=True)


def _action(kind: str, action: Action, *, only_running: bool = False) -> Handler:
    async def handler(call: Call) -> str:
        vm = call.vm
        if only_running and not vm.running:
            raise OperationError(f"VM {vm.vmid} not running")

        async def work(_: Task) -> None:
            async with vm.locked():
                await action(call.hypervisor, vm)

        return await call.start(kind, vm.vmid, work)

    return handler


_MAY_SWITCH = needs("/vms/{vmid}", "VM.PowerMgmt")
_STATUS = "/nodes/{node}/qemu/{vmid}/status"


def _post(verb: str, handler: Handler, parameters: str) -> Route:
    return Route(
        method="POST",
        path=f"{_STATUS}/{verb}",
        handler=handler,
        permission=_MAY_SWITCH,
        parameters=takes(parameters),
    )


ROUTES = (
    Route(method="GET", path=f"{_STATUS}/current", handler=current, permission=needs("/vms/{vmid}", "VM.Audit")),
    _post("start", _action("qmstart", machine_power.start), "timeout:integer skiplock:boolean machine"),
    _post("stop", _action("qmstop", _stop), "timeout:integer skiplock:boolean overrule-shutdown:boolean"),
    _post("shutdown", _action("qmshutdown", _shut_down), "timeout:integer skiplock:boolean forceStop:boolean"),
    _post("reboot", _action("qmreboot", machine_power.reboot, only_running=True), "timeout:integer"),
    _post("reset", _action("qmreset", machine_power.reset, only_running=True), "skiplock:boolean"),
)
