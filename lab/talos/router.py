"""Who may call what, and on which machine a call ends: itself, another one, or several at once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import Message
from grpclib.const import Cardinality, Handler, Status
from grpclib.exceptions import GRPCError

from lab.talos.machine_api import MachineApi
from lab.talos.relay import Collector, Tagger
from lab.talos.small_apis import StorageApi, TimeApi
from lab.talos.state_api import StateApi
from talos_api import common_pb2

if TYPE_CHECKING:
    from lab.talos.machine import Machine

ADMIN, OPERATOR, READER = "os:admin", "os:operator", "os:reader"
ADMIN_ONLY = {
    "Bootstrap", "EtcdForfeitLeadership", "EtcdLeaveCluster", "EtcdRemoveMemberByID", "Kubeconfig", "Read", "Reset",
}  # fmt: skip
OPERATORS_TOO = {"Reboot", "ServiceRestart", "ServiceStart", "ServiceStop", "Shutdown"}
WRITES = ADMIN_ONLY - {"Kubeconfig", "Read"} | OPERATORS_TOO | {"ApplyConfiguration"}
ONE_TO_ONE = "/cosi.resource.State/"


class Router:
    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._local: dict[str, Handler] = {}
        for api in (MachineApi(machine), StorageApi(machine), TimeApi(machine), StateApi(machine)):
            self._local.update(api.__mapping__())

    def __mapping__(self) -> Mapping[str, Handler]:
        return {
            path: Handler(partial(self._handle, path), entry.cardinality, entry.request_type, entry.reply_type)
            for path, entry in self._local.items()
        }

    def unknown(self, path: str) -> Handler:
        """A method that is not emulated: said so, and written down."""
        return Handler(partial(self._refuse, path), Cardinality.UNARY_UNARY, Empty, Empty)

    async def _refuse(self, path: str, stream: Any) -> None:
        self._record(path, stream, Status.UNIMPLEMENTED)
        service, _, method = path.strip("/").rpartition("/")
        raise GRPCError(Status.UNIMPLEMENTED, f"unknown method {method} for service {service}")

    async def _handle(self, path: str, stream: Any) -> None:
        status = Status.OK
        try:
            self._authorize(path, stream)
            await self._route(path, stream)
        except GRPCError as error:
            status = error.status
            raise
        except asyncio.CancelledError:
            status = Status.CANCELLED
            raise
        finally:
            self._record(path, stream, status)

    def _record(self, path: str, stream: Any, status: Status) -> None:
        method = path.rsplit("/", 1)[1]
        nodes = stream.metadata.getall("node", []) + stream.metadata.getall("nodes", [])
        more = {"machine": self._machine.name, "vmid": self._machine.boot.vmid, "nodes": nodes}
        self._machine.around.log.record("talos", method, path, status.name, write=method in WRITES, **more)

    def _authorize(self, path: str, stream: Any) -> None:
        method = path.rsplit("/", 1)[1]
        roles = self._roles(stream)
        allowed = {ADMIN} if method in ADMIN_ONLY else {ADMIN, OPERATOR}
        if method not in ADMIN_ONLY | OPERATORS_TOO:
            allowed = {ADMIN, OPERATOR, READER}
        if method == "ApplyConfiguration" and not self._machine.in_maintenance:
            allowed = {ADMIN}
        if not roles & allowed:
            raise GRPCError(Status.PERMISSION_DENIED, "not authorized")

    def _roles(self, stream: Any) -> set[str]:
        """Of the client's certificate; whoever comes without one, in maintenance mode, may read."""
        certificate = stream.peer.cert() if not self._machine.in_maintenance else None
        if not certificate:
            return {READER}
        subject = [pair for part in certificate.get("subject", ()) for pair in part]
        return {value for key, value in subject if key == "organizationName"}

    async def _route(self, path: str, stream: Any) -> None:
        node, nodes = stream.metadata.getall("node", []), stream.metadata.getall("nodes", [])
        if self._machine.in_maintenance or not (node or nodes) or self._only_me(node, nodes):
            await self._local[path].func(stream)
        elif self._machine.config is None or not self._machine.config.is_control_plane:
            raise GRPCError(Status.PERMISSION_DENIED, "no request forwarding")
        elif nodes and path.startswith(ONE_TO_ONE):
            raise GRPCError(Status.INVALID_ARGUMENT, f"one-2-many proxying is not supported for method {path}")
        elif nodes:
            await self._aggregate(path, nodes, stream)
        else:
            await self._peer(node[0])._local[path].func(stream)

    def _only_me(self, node: list[str], nodes: list[str]) -> bool:
        """A worker forwards nothing, but may be asked by its own address."""
        config = self._machine.config
        worker = config is not None and not config.is_control_plane
        mine = {*self._machine.hosts, self._machine.name}
        return worker and (not nodes or (len(nodes) == 1 and nodes[0] in mine)) and (not node or node[0] in mine)

    def _peer(self, target: str) -> Router:
        machine = self._machine.around.find(target)
        if machine is None or not machine.listener.open:
            message = f"connection error: dial tcp {target}:{self._machine.around.port}: connect: no route to host"
            raise GRPCError(Status.UNAVAILABLE, message)
        if machine.config is None or machine.config.ca_certificate != self._ca:
            message = "connection error: authentication handshake failed: certificate signed by unknown authority"
            raise GRPCError(Status.UNAVAILABLE, message)
        return machine.api

    @property
    def _ca(self) -> str:
        return self._machine.config.ca_certificate if self._machine.config else ""

    async def _aggregate(self, path: str, targets: list[str], stream: Any) -> None:
        entry = self._local[path]
        request = await stream.recv_message()
        if entry.cardinality is Cardinality.UNARY_UNARY:
            replies = await asyncio.gather(*(self._ask(path, target, request, stream) for target in targets))
            answer = entry.reply_type()
            for reply in replies:
                answer.MergeFrom(reply)
            await stream.send_message(answer)
        else:
            taggers = [Tagger(stream, request, target) for target in targets]
            await asyncio.gather(*(self._peer(each.target)._local[path].func(each) for each in taggers))

    async def _ask(self, path: str, target: str, request: Message, stream: Any) -> Message:
        """One machine's reply, with its address; a failure becomes a reply too."""
        collector = Collector(request, stream)
        try:
            await self._peer(target)._local[path].func(collector)
            reply: Any = collector.replies[0]
            for message in reply.messages:
                message.metadata.hostname = target
        except GRPCError as error:
            reply = self._local[path].reply_type()
            text = f"rpc error: code = {error.status.name} desc = {error.message}"
            status = common_pb2.Status(code=error.status.value, message=error.message or "")
            reply.messages.add().metadata.CopyFrom(common_pb2.Metadata(hostname=target, error=text, status=status))
        return reply  # type: ignore[no-any-return]
