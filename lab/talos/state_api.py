"""cosi.resource.State: reading and watching a machine's resources."""

# ruff: noqa: N802 - methods are named as the service names them

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from grpclib.const import Status
from grpclib.exceptions import GRPCError
from grpclib.server import Stream

from lab.talos import definitions, specs
from lab.talos.request import request_of
from lab.talos.store import Store, build, encode
from talos_api import cosi_pb2 as pb
from talos_api import resources as kinds
from talos_api.cosi_grpc import StateBase
from talos_api.resources import Kind

if TYPE_CHECKING:
    from lab.talos.machine import Machine


@cache
def meta_store() -> Store:
    """The same on every machine."""
    store = Store()
    store.replace(kinds.RESOURCE_DEFINITION, definitions.definition_specs())
    store.replace(definitions.NAMESPACE, definitions.namespace_specs())
    return store


class StateApi(StateBase):
    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    async def Get(self, stream: Stream[pb.GetRequest, pb.GetResponse]) -> None:
        request = await request_of(stream)
        kind = checked_kind(request.namespace, request.type)
        found = next((each for each in self._all(kind) if each.metadata.id == request.id), None)
        if found is None:
            place = f"{kind.type}({kind.namespace}/{request.id}@undefined)"
            raise GRPCError(Status.NOT_FOUND, f"resource {place} doesn't exist")
        await stream.send_message(pb.GetResponse(resource=found))

    async def List(self, stream: Stream[pb.ListRequest, pb.ListResponse]) -> None:
        request = await request_of(stream)
        kind = checked_kind(request.namespace, request.type)
        for resource in self._all(kind):
            if _selected(resource, request.options):
                await stream.send_message(pb.ListResponse(resource=resource))

    async def Watch(self, stream: Stream[pb.WatchRequest, pb.WatchResponse]) -> None:
        request = await request_of(stream)
        kind = checked_kind(request.namespace, request.type)
        with self._store(kind).watching(kind) as queue:
            await stream.send_message(pb.WatchResponse())
            for event in self._beginning(kind, request):
                await stream.send_message(pb.WatchResponse(event=[event]))
            while True:
                event = await queue.get()
                if not request.HasField("id") or event.resource.metadata.id == request.id:
                    await stream.send_message(pb.WatchResponse(event=[event]))

    def _beginning(self, kind: Kind, request: pb.WatchRequest) -> list[pb.Event]:
        """One resource: what it is now. All of a kind: everything there is, if that was asked for."""
        existing = [pb.Event(event_type=pb.EventType.CREATED, resource=resource) for resource in self._all(kind)]
        if request.HasField("id"):
            found = [event for event in existing if event.resource.metadata.id == request.id]
            return found or [_tombstone(kind, request.id)]
        if not request.options.bootstrap_contents:
            return []
        done = pb.Event(event_type=pb.EventType.BOOTSTRAPPED, resource=_tombstone(kind, "").resource)
        return [*existing, done] if request.api_version >= 1 else existing

    def _store(self, kind: Kind) -> Store:
        return meta_store() if kind.namespace == "meta" else self._machine.store

    def _all(self, kind: Kind) -> list[pb.Resource]:
        if kind == kinds.MEMBER:
            return self._members()
        return self._store(kind).list(kind)

    def _members(self) -> list[pb.Resource]:
        """Everybody in the cluster whom discovery has seen; made when asked for, as there may be many."""
        mine = self._machine.config.cluster_id if self._machine.config else None
        peers = [
            (machine, machine.config)
            for machine in self._machine.around.machines.values()
            if machine.config is not None and machine.config.cluster_id == mine
        ]
        return [
            build(
                kinds.MEMBER,
                machine.name,
                encode(specs.member(machine.boot_id, machine.name, config.role, machine.version, machine.addresses)),
                "cluster.MemberController",
            )
            for machine, config in peers
        ]


def checked_kind(namespace: str, type: str) -> Kind:
    if type not in definitions.TYPES:
        raise GRPCError(Status.PERMISSION_DENIED, f'resource type "{type}" is not supported')
    if namespace not in definitions.NAMESPACES:
        raise GRPCError(Status.PERMISSION_DENIED, f'namespace "{namespace}" is not supported')
    return Kind(namespace, type)


def _selected(resource: pb.Resource, options: pb.ListOptions) -> bool:
    pattern = options.id_query.regexp
    return not pattern or re.search(pattern, resource.metadata.id) is not None


def _tombstone(kind: Kind, id: str) -> pb.Event:
    metadata = pb.Metadata(namespace=kind.namespace, type=kind.type, id=id, version="undefined", phase="tearing down")
    resource = pb.Resource(metadata=metadata, spec=pb.Spec())
    return pb.Event(event_type=pb.EventType.DESTROYED, resource=resource)
