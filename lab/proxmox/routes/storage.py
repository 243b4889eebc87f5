"""Storages, cluster-wide and as each host sees them."""

from __future__ import annotations

from typing import Any

from lab.proxmox.call import Call
from lab.proxmox.datastore import Datastore, StorageSpec
from lab.proxmox.errors import OperationError
from lab.proxmox.route import Route, needs, takes
from lab.proxmox.summary import storage_summary
from lab.proxmox.vm_options import split_list


def _visible(call: Call, name: str) -> bool:
    return call.allows(f"/storage/{name}", "Datastore.Audit", "Datastore.AllocateSpace", any_of=True)


def _definitions(call: Call) -> dict[str, StorageSpec]:
    return {name: spec for host in call.hypervisor.hosts.values() for name, spec in host.spec.storages.items()}


def _definition(name: str, spec: StorageSpec) -> dict[str, Any]:
    path = {"path": spec.path} if spec.path else {}
    content = ",".join(sorted(spec.content))
    return {"storage": name, "type": spec.kind, "content": content, "shared": int(spec.shared), **path}


async def definitions(call: Call) -> list[dict[str, Any]]:
    found = _definitions(call)
    return [_definition(name, spec) for name, spec in sorted(found.items()) if _visible(call, name)]


async def definition(call: Call) -> dict[str, Any]:
    name = call.params["storage"]
    found = _definitions(call)
    if name not in found:
        raise OperationError(f"storage '{name}' does not exist")
    return _definition(name, found[name])


async def index(call: Call) -> list[dict[str, Any]]:
    stores = [datastore for _, datastore in sorted(call.host.datastores.items())]
    return [
        {"storage": datastore.name, **storage_summary(datastore), "used_fraction": _fraction(datastore)}
        for datastore in stores
        if _visible(call, datastore.name) and _asked(call, datastore)
    ]


def _asked(call: Call, datastore: Datastore) -> bool:
    named = call.params.get("storage") in {None, datastore.name}
    return named and set(split_list(call.params.get("content", ""))) <= datastore.spec.content


def _fraction(datastore: Datastore) -> float:
    return datastore.used / datastore.spec.total


async def status(call: Call) -> dict[str, Any]:
    return storage_summary(call.host.datastore(call.params["storage"]))


ROUTES = (
    Route(method="GET", path="/storage", handler=definitions, parameters=takes("type")),
    Route(
        method="GET",
        path="/storage/{storage}",
        handler=definition,
        permission=needs("/storage/{storage}", "Datastore.Allocate"),
    ),
    Route(
        method="GET",
        path="/nodes/{node}/storage",
        handler=index,
        parameters=takes("content enabled:boolean format:boolean storage target"),
    ),
    Route(
        method="GET",
        path="/nodes/{node}/storage/{storage}/status",
        handler=status,
        permission=needs("/storage/{storage}", "Datastore.Audit", "Datastore.AllocateSpace", any_of=True),
    ),
)
