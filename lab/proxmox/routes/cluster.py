"""Version, free ids, and the list of everything."""

from __future__ import annotations

from typing import Any

from lab.proxmox.call import Call
from lab.proxmox.errors import ParameterError
from lab.proxmox.hypervisor import RELEASE, VERSION, Host
from lab.proxmox.route import Route, needs, takes
from lab.proxmox.summary import host_summary, storage_summary, vm_summary


async def version(_: Call) -> dict[str, str]:
    return {"version": VERSION, "release": RELEASE, "repoid": "0000000000000000"}


async def next_id(call: Call) -> str:
    if "vmid" not in call.params:
        return str(call.hypervisor.next_vmid())
    if call.vmid in call.hypervisor.vms:
        raise ParameterError(vmid=f"VM {call.vmid} already exists")
    return str(call.vmid)


async def status(call: Call) -> list[dict[str, Any]]:
    hosts = list(call.hypervisor.hosts)
    cluster = {"type": "cluster", "id": "cluster", "name": "lab", "nodes": len(hosts), "quorate": 1, "version": 1}
    return [cluster] + [
        {"type": "node", "id": f"node/{name}", "name": name, "nodeid": number, "online": 1, "local": int(number == 1)}
        for number, name in enumerate(hosts, start=1)
    ]


async def resources(call: Call) -> list[dict[str, Any]]:
    wanted = call.params.get("type")
    found: list[dict[str, Any]] = []
    if wanted in {None, "vm"}:
        found += _vms(call)
    for host in call.hypervisor.hosts.values():
        if wanted in {None, "node"}:
            audited = call.allows(f"/nodes/{host.name}", "Sys.Audit")
            found.append({"id": f"node/{host.name}", **host_summary(host, audited=audited), "type": "node"})
        if wanted in {None, "storage"}:
            found += _storages(call, host)
    return found


def _vms(call: Call) -> list[dict[str, Any]]:
    vms = [vm for _, vm in sorted(call.hypervisor.vms.items()) if call.allows(f"/vms/{vm.vmid}", "VM.Audit")]
    found = []
    for vm in vms:
        pool = call.hypervisor.pool_of(vm.vmid)
        place = {"id": f"qemu/{vm.vmid}", "type": "qemu", "node": vm.node, "maxcpu": vm.cores}
        entry = {**vm_summary(call.hypervisor.host(vm.node), vm), **place} | ({"pool": pool} if pool else {})
        found.append({key: value for key, value in entry.items() if key not in {"cpus", "pid", "qmpstatus"}})
    return found


def _storages(call: Call, host: Host) -> list[dict[str, Any]]:
    found = []
    for datastore in host.datastores.values():
        if call.allows(f"/storage/{datastore.name}", "Datastore.Audit", "Datastore.AllocateSpace", any_of=True):
            numbers = storage_summary(datastore)
            found.append(
                {
                    "id": f"storage/{host.name}/{datastore.name}",
                    "type": "storage",
                    "node": host.name,
                    "storage": datastore.name,
                    "plugintype": datastore.spec.kind,
                    "content": numbers["content"],
                    "shared": numbers["shared"],
                    "status": "available",
                    "disk": numbers["used"],
                    "maxdisk": numbers["total"],
                }
            )
    return found


ROUTES = (
    Route(method="GET", path="/version", handler=version),
    Route(method="GET", path="/cluster/nextid", handler=next_id, parameters=takes("vmid:integer")),
    Route(method="GET", path="/cluster/status", handler=status, permission=needs("/", "Sys.Audit")),
    Route(method="GET", path="/cluster/resources", handler=resources, parameters=takes("type")),
)
