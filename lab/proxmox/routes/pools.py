"""Resource pools; each route exists with the pool in the path and, newer, as a parameter."""

from __future__ import annotations

from typing import Any

from lab.proxmox.call import Call
from lab.proxmox.errors import ApiError, OperationError
from lab.proxmox.hypervisor import Pool
from lab.proxmox.route import Route, needs, takes
from lab.proxmox.vm_options import split_list


def _pool(call: Call) -> Pool:
    poolid = call.params["poolid"]
    if poolid not in call.hypervisor.pools:
        raise OperationError(f"pool '{poolid}' does not exist")
    return call.hypervisor.pools[poolid]


def _members(call: Call, pool: Pool) -> list[dict[str, Any]]:
    wanted = call.params.get("type")
    vms = [call.hypervisor.vms[vmid] for vmid in sorted(pool.vms)]
    members: list[dict[str, Any]] = [
        {"id": f"qemu/{vm.vmid}", "type": "qemu", "vmid": vm.vmid, "node": vm.node, "name": vm.name} for vm in vms
    ]
    for host in call.hypervisor.hosts.values():
        members += [
            {"id": f"storage/{host.name}/{name}", "type": "storage", "storage": name, "node": host.name}
            for name in sorted(pool.storages & host.datastores.keys())
        ]
    return [member for member in members if wanted in {None, member["type"]}]


async def index(call: Call) -> list[dict[str, Any]]:
    if "poolid" in call.params:
        call.check(f"/pool/{call.params['poolid']}", "Pool.Audit")
        pool = _pool(call)
        return [{"poolid": call.params["poolid"], "comment": pool.comment, "members": _members(call, pool)}]
    return [
        {"poolid": name, "comment": pool.comment}
        for name, pool in call.hypervisor.pools.items()
        if call.allows(f"/pool/{name}", "Pool.Audit")
    ]


async def read(call: Call) -> dict[str, Any]:
    pool = _pool(call)
    return {"comment": pool.comment, "members": _members(call, pool)}


async def create(call: Call) -> None:
    poolid = call.params["poolid"]
    if poolid in call.hypervisor.pools:
        raise OperationError(f"create pool failed: pool '{poolid}' already exists")
    call.hypervisor.pools[poolid] = Pool(comment=call.params.get("comment", ""))


async def update(call: Call) -> None:
    pool = _pool(call)
    pool.comment = call.params.get("comment", pool.comment)
    for vmid in map(int, split_list(call.params.get("vms", ""))):
        _move_vm(call, pool, vmid)
    for storage in split_list(call.params.get("storage", "")):
        call.check(f"/storage/{storage}", "Datastore.Allocate")
        (pool.storages.discard if call.flag("delete") else pool.storages.add)(storage)


def _move_vm(call: Call, pool: Pool, vmid: int) -> None:
    call.check(f"/vms/{vmid}", "VM.Allocate")
    if call.flag("delete"):
        if vmid not in pool.vms:
            raise OperationError(f"VM {vmid} is not a pool member")
        pool.vms.discard(vmid)
        return
    if vmid not in call.hypervisor.vms:
        raise OperationError(f"VM {vmid} does not exist")
    previous = call.hypervisor.pool_of(vmid)
    if previous and call.hypervisor.pools[previous] is not pool:
        if not call.flag("allow-move"):
            raise OperationError(f"VM {vmid} belongs already to pool '{previous}' and 'allow-move' is not set")
        call.hypervisor.pools[previous].vms.discard(vmid)
    pool.vms.add(vmid)


async def delete(call: Call) -> None:
    pool = _pool(call)
    if pool.vms or pool.storages:
        raise ApiError(500, f"delete pool failed: pool '{call.params['poolid']}' is not empty")
    del call.hypervisor.pools[call.params["poolid"]]


_MAY_ALLOCATE = needs("/pool/{poolid}", "Pool.Allocate")
_CHANGES = "comment vms storage delete:boolean allow-move:boolean"

ROUTES = (
    Route(method="GET", path="/pools", handler=index, parameters=takes("poolid type")),
    Route(
        method="POST",
        path="/pools",
        handler=create,
        permission=_MAY_ALLOCATE,
        parameters=takes("poolid! comment"),
    ),
    Route(
        method="PUT",
        path="/pools",
        handler=update,
        permission=_MAY_ALLOCATE,
        parameters=takes(f"poolid! {_CHANGES}"),
    ),
    Route(method="DELETE", path="/pools", handler=delete, permission=_MAY_ALLOCATE, parameters=takes("poolid!")),
    Route(
        method="GET",
        path="/pools/{poolid}",
        handler=read,
        permission=needs("/pool/{poolid}", "Pool.Audit"),
        parameters=takes("type"),
    ),
    Route(method="PUT", path="/pools/{poolid}", handler=update, permission=_MAY_ALLOCATE, parameters=takes(_CHANGES)),
    Route(method="DELETE", path="/pools/{poolid}", handler=delete, permission=_MAY_ALLOCATE),
)
