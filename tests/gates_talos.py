"""Talos machines in memory behind the real wire protocol, on loopback addresses."""

from __future__ import annotations

import asyncio
import base64
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import yaml
from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import Message
from grpclib.const import Cardinality, Handler, Status
from grpclib.exceptions import GRPCError
from grpclib.protocol import H2Protocol
from grpclib.server import Server, Stream

from lab.talos import tls
from talos_api import common_pb2, cosi_pb2, machine_pb2, storage_pb2
from talos_api.cosi_grpc import StateBase
from talos_api.resources import ADDRESS_STATUS, KUBELET_SPEC, MACHINE_STATUS, TIME_STATUS, Kind
from talos_api.storage_grpc import StorageServiceBase
from tests.talos_pki import TestAuthority

Resources = dict[tuple[str, str], dict[str, Any]]


def service(name: str, state: str = "Running", *, healthy: bool = True, event: str = "") -> machine_pb2.ServiceInfo:
    events = machine_pb2.ServiceEvents(events=[machine_pb2.ServiceEvent(msg=event, state=state)] if event else [])
    health = machine_pb2.ServiceHealth(healthy=healthy, last_message="" if healthy else "probe failed")
    return machine_pb2.ServiceInfo(id=name, state=state, events=events, health=health)


def member(number: int, name: str, address: str, *, learner: bool = False) -> machine_pb2.EtcdMember:
    url = f"https://{address}:2380"
    return machine_pb2.EtcdMember(id=number, hostname=name, peer_urls=[url], is_learner=learner)


def healthy_resources(address: str) -> Resources:
    static = {"address": f"{address}/24", "linkName": "ens18", "family": "inet4"}
    return {
        (MACHINE_STATUS.type, "machine"): {"stage": "running", "status": {"ready": True}},
        (TIME_STATUS.type, "node"): {"synced": True},
        (KUBELET_SPEC.type, "kubelet"): {"image": "ghcr.io/siderolabs/kubelet:v1.36.4"},
        (ADDRESS_STATUS.type, f"ens18/{address}"): static,
        (ADDRESS_STATUS.type, "lo/127"): {"address": "127.0.0.1/8", "linkName": "lo", "family": "inet4"},
        (ADDRESS_STATUS.type, "ens18/vip"): {"address": "10.0.0.10/32", "linkName": "ens18", "family": "inet4"},
        (ADDRESS_STATUS.type, "ens18/fe80"): {"address": "fe80::1/64", "linkName": "ens18", "family": "inet6"},
    }


class _Machine:
    """Only what the gates ask; every other method is unimplemented, as on a machine that does not know it."""

    def __init__(self, fake: FakeTalos) -> None:
        self._fake = fake

    def __mapping__(self) -> dict[str, Handler]:
        prefix = "/machine.MachineService/"
        replies = {"Version": self.version, "ServiceList": self.services, "EtcdMemberList": self.members}
        streams = {"Logs": (self.log, machine_pb2.LogsRequest), "Dmesg": (self.log, machine_pb2.DmesgRequest)}
        kinds: dict[str, tuple[type[Message], type[Message]]] = {
            "Version": (Empty, machine_pb2.VersionResponse),
            "ServiceList": (Empty, machine_pb2.ServiceListResponse),
            "EtcdMemberList": (machine_pb2.EtcdMemberListRequest, machine_pb2.EtcdMemberListResponse),
        }
        return {
            f"{prefix}{name}": Handler(reply, Cardinality.UNARY_UNARY, *kinds[name]) for name, reply in replies.items()
        } | {
            f"{prefix}{name}": Handler(reply, Cardinality.UNARY_STREAM, kind, common_pb2.Data)
            for name, (reply, kind) in streams.items()
        }

    async def log(self, stream: Stream[Any, common_pb2.Data]) -> None:
        await stream.recv_message()
        await stream.send_message(common_pb2.Data(bytes=b"first line\nlast line\n"))

    async def version(self, stream: Stream[Empty, machine_pb2.VersionResponse]) -> None:
        await stream.recv_message()
        await self._fake.answering()
        version = machine_pb2.Version(version=machine_pb2.VersionInfo(tag=self._fake.version))
        await stream.send_message(machine_pb2.VersionResponse(messages=[version]))

    async def services(self, stream: Stream[Empty, machine_pb2.ServiceListResponse]) -> None:
        await stream.recv_message()
        await self._fake.answering()
        listed = machine_pb2.ServiceList(services=self._fake.services.values())
        await stream.send_message(machine_pb2.ServiceListResponse(messages=[listed]))

    async def members(
        self, stream: Stream[machine_pb2.EtcdMemberListRequest, machine_pb2.EtcdMemberListResponse]
    ) -> None:
        await stream.recv_message()
        members = machine_pb2.EtcdMembers(members=self._fake.members)
        await stream.send_message(machine_pb2.EtcdMemberListResponse(messages=[members]))


class _Storage(StorageServiceBase):
    async def Disks(self, stream: Stream[Empty, storage_pb2.DisksResponse]) -> None:  # noqa: N802
        await stream.recv_message()
        await stream.send_message(storage_pb2.DisksResponse(messages=[storage_pb2.Disks()]))


class _State(StateBase):
    def __init__(self, fake: FakeTalos) -> None:
        self._fake = fake

    async def Get(self, stream: Stream[cosi_pb2.GetRequest, cosi_pb2.GetResponse]) -> None:  # noqa: N802
        request = await stream.recv_message()
        assert request is not None
        if (request.type, request.id) not in self._fake.resources:
            raise GRPCError(self._fake.missing, "no such resource")
        await stream.send_message(cosi_pb2.GetResponse(resource=self._resource(request.type, request.id)))

    async def List(self, stream: Stream[cosi_pb2.ListRequest, cosi_pb2.ListResponse]) -> None:  # noqa: N802
        request = await stream.recv_message()
        assert request is not None
        for kind, name in list(self._fake.resources):
            if kind == request.type:
                await stream.send_message(cosi_pb2.ListResponse(resource=self._resource(kind, name)))

    async def Watch(self, stream: Stream[cosi_pb2.WatchRequest, cosi_pb2.WatchResponse]) -> None:  # noqa: N802
        await stream.recv_message()
        event = cosi_pb2.Event(event_type=cosi_pb2.EventType.BOOTSTRAPPED)
        self._fake.watches += 1
        while True:
            await stream.send_message(cosi_pb2.WatchResponse(event=[event]))
            await self._fake.next_change()

    def _resource(self, kind: str, name: str) -> cosi_pb2.Resource:
        spec = cosi_pb2.Spec(yaml_spec=yaml.safe_dump(self._fake.resources[(kind, name)]))
        return cosi_pb2.Resource(metadata=cosi_pb2.Metadata(type=kind, id=name, version="1"), spec=spec)


class _ClosingServer(Server):
    """Also ends the connections it has, as a machine that goes down does."""

    def __init__(self, handlers: list[Any]) -> None:
        super().__init__(handlers)
        self._protocols: list[H2Protocol] = []

    def _protocol_factory(self) -> H2Protocol:
        self._protocols.append(super()._protocol_factory())
        return self._protocols[-1]

    def hang_up(self) -> None:
        for protocol in self._protocols:
            if hasattr(protocol, "connection"):
                protocol.connection.close()


@dataclass(kw_only=True)
class FakeTalos:
    """One machine."""

    address: str
    authority: TestAuthority
    version: str = "v1.13.9"
    services: dict[str, machine_pb2.ServiceInfo] = field(default_factory=dict)
    members: list[machine_pb2.EtcdMember] = field(default_factory=list)
    resources: Resources = field(default_factory=dict)
    missing: Status = Status.NOT_FOUND
    stuck: bool = False
    watches: int = 0
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    port: int = 0
    _server: _ClosingServer | None = None

    def __post_init__(self) -> None:
        self.services = {name: service(name) for name in ("etcd", "kubelet")}
        self.resources = healthy_resources(self.address)

    def change(self) -> None:
        """Wake every watch."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def next_change(self) -> None:
        await self._changed.wait()

    async def answering(self) -> None:
        if self.stuck:
            await asyncio.Event().wait()

    def set(self, kind: Kind, name: str, spec: dict[str, Any]) -> None:
        self.resources[(kind.type, name)] = spec

    async def start(
        self, port: int, *, maintenance: bool = False, authority: TestAuthority | None = None, name: str = ""
    ) -> int:
        """In maintenance mode nobody needs a certificate; otherwise everybody does."""
        await self.stop()
        # A machine without configuration makes up a certificate that nobody signed.
        owner = TestAuthority("maintenance") if maintenance else authority or self.authority
        identity = owner.server(name or self.address)
        context = tls.server_context(identity.certificate, identity.key, None if maintenance else owner.certificate)
        listener = socket.create_server((self.address, port))
        handlers: list[Any] = [_Storage()] if maintenance else [_Machine(self), _Storage(), _State(self)]
        self._server = _ClosingServer(handlers)
        await self._server.start(sock=listener, ssl=context)
        self.port = int(listener.getsockname()[1])
        return self.port

    async def stop(self) -> None:
        if self._server:
            self._server.hang_up()
            self._server.close()
            await self._server.wait_closed()
            self._server = None


def credentials(authority: TestAuthority) -> dict[str, str]:
    found = authority.credentials()
    parts = {"ca": found.ca, "certificate": found.certificate, "key": found.key}
    return {name: base64.b64encode(pem.encode()).decode() for name, pem in parts.items()}


@asynccontextmanager
async def machines(*addresses: str) -> AsyncIterator[list[FakeTalos]]:
    """Configured machines that share a port; the first one's choice."""
    authority = TestAuthority()
    made = [FakeTalos(address=address, authority=authority) for address in addresses]
    port = 0
    for each in made:
        port = await each.start(port)
    try:
        yield made
    finally:
        for each in made:
            await each.stop()
