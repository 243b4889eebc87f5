"""A client of one machine's Talos API, in maintenance mode or with the cluster's credentials."""

from __future__ import annotations

import io
import tarfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import TypeVar

from google.protobuf.empty_pb2 import Empty

from talos_api import cosi_pb2, machine_pb2, storage_pb2, time_pb2
from talos_api.connection import PORT, Connection
from talos_api.cosi_grpc import StateStub
from talos_api.credentials import Credentials
from talos_api.errors import Reason, TalosError
from talos_api.machine_grpc import MachineServiceStub
from talos_api.resources import Change, Kind, Resource, decode, decode_change
from talos_api.storage_grpc import StorageServiceStub
from talos_api.time_grpc import TimeServiceStub

PartT = TypeVar("PartT")
ApplyMode = machine_pb2.ApplyConfigurationRequest.Mode
RebootMode = machine_pb2.RebootRequest.Mode


def _only(messages: Sequence[PartT]) -> PartT:
    """A machine that answers for itself sends one message."""
    if len(messages) != 1:
        raise TalosError(Reason.STATUS, f"expected one message, got {len(messages)}")
    return messages[0]


class TalosClient(Connection):
    """Needs a running event loop; close it, or use it as an async context manager.

    Every call raises TalosError. Without credentials it speaks to a machine in maintenance mode and verifies nothing.
    """

    def __init__(
        self, address: str, credentials: Credentials | None = None, *, port: int = PORT, timeout: float = 10.0
    ) -> None:
        super().__init__(address, credentials, port=port, timeout=timeout)
        self.machine = MachineServiceStub(self.channel)
        self.storage = StorageServiceStub(self.channel)
        self.clock = TimeServiceStub(self.channel)
        self.state = StateStub(self.channel)

    async def version(self) -> machine_pb2.Version:
        return _only((await self.call(self.machine.Version, Empty())).messages)

    async def hostname(self) -> str:
        return _only((await self.call(self.machine.Hostname, Empty())).messages).hostname

    async def disks(self) -> list[storage_pb2.Disk]:
        return list(_only((await self.call(self.storage.Disks, Empty())).messages).disks)

    async def memory(self) -> machine_pb2.MemInfo:
        return _only((await self.call(self.machine.Memory, Empty())).messages).meminfo

    async def system_stat(self) -> machine_pb2.SystemStat:
        return _only((await self.call(self.machine.SystemStat, Empty())).messages)

    async def time(self) -> time_pb2.Time:
        return _only((await self.call(self.clock.Time, Empty())).messages)

    async def time_check(self, server: str) -> time_pb2.Time:
        return _only((await self.call(self.clock.TimeCheck, time_pb2.TimeRequest(server=server))).messages)

    async def services(self) -> dict[str, machine_pb2.ServiceInfo]:
        """By id."""
        listed = _only((await self.call(self.machine.ServiceList, Empty())).messages)
        return {service.id: service for service in listed.services}

    async def restart_service(self, service: str) -> str:
        request = machine_pb2.ServiceRestartRequest(id=service)
        return _only((await self.call(self.machine.ServiceRestart, request)).messages).resp

    async def apply(
        self, config: bytes, mode: ApplyMode.ValueType = ApplyMode.AUTO, *, dry_run: bool = False
    ) -> machine_pb2.ApplyConfiguration:
        request = machine_pb2.ApplyConfigurationRequest(data=config, mode=mode, dry_run=dry_run)
        return _only((await self.call(self.machine.ApplyConfiguration, request)).messages)

    async def bootstrap(self) -> None:
        await self.call(self.machine.Bootstrap, machine_pb2.BootstrapRequest())

    async def kubeconfig(self) -> str:
        packed = b"".join(data.bytes for data in await self.collect(self.machine.Kubeconfig, Empty()))
        with tarfile.open(fileobj=io.BytesIO(packed), mode="r:gz") as archive:
            file = archive.extractfile(archive.getmembers()[0])
            return file.read().decode() if file else ""

    async def etcd_members(self, *, local: bool = False) -> list[machine_pb2.EtcdMember]:
        request = machine_pb2.EtcdMemberListRequest(query_local=local)
        return list(_only((await self.call(self.machine.EtcdMemberList, request)).messages).members)

    async def etcd_status(self) -> machine_pb2.EtcdMemberStatus:
        return _only((await self.call(self.machine.EtcdStatus, Empty())).messages).member_status

    async def etcd_leave(self) -> None:
        await self.call(self.machine.EtcdLeaveCluster, machine_pb2.EtcdLeaveClusterRequest())

    async def etcd_forfeit_leadership(self) -> str:
        """The new leader's name; empty when this machine was not the leader."""
        request = machine_pb2.EtcdForfeitLeadershipRequest()
        return _only((await self.call(self.machine.EtcdForfeitLeadership, request)).messages).member

    async def etcd_remove_member(self, member: int) -> None:
        request = machine_pb2.EtcdRemoveMemberByIDRequest(member_id=member)
        await self.call(self.machine.EtcdRemoveMemberByID, request)

    async def reboot(self, mode: RebootMode.ValueType = RebootMode.DEFAULT) -> None:
        await self.call(self.machine.Reboot, machine_pb2.RebootRequest(mode=mode))

    async def shutdown(self) -> None:
        await self.call(self.machine.Shutdown, machine_pb2.ShutdownRequest())

    async def reset(self, *, graceful: bool = True, reboot: bool = True) -> None:
        await self.call(self.machine.Reset, machine_pb2.ResetRequest(graceful=graceful, reboot=reboot))

    async def dmesg(self) -> str:
        parts = await self.collect(self.machine.Dmesg, machine_pb2.DmesgRequest())
        return b"".join(part.bytes for part in parts).decode(errors="replace")

    async def logs(self, service: str, *, tail_lines: int = 100) -> str:
        request = machine_pb2.LogsRequest(namespace="system", id=service, tail_lines=tail_lines)
        parts = await self.collect(self.machine.Logs, request)
        return b"".join(part.bytes for part in parts).decode(errors="replace")

    async def get(self, kind: Kind, id: str) -> Resource:
        """Raises TalosError with status NOT_FOUND when there is none."""
        request = cosi_pb2.GetRequest(namespace=kind.namespace, type=kind.type, id=id)
        return decode((await self.call(self.state.Get, request)).resource)

    async def list(self, kind: Kind) -> list[Resource]:
        request = cosi_pb2.ListRequest(namespace=kind.namespace, type=kind.type)
        return [decode(reply.resource) for reply in await self.collect(self.state.List, request)]

    async def watch(self, kind: Kind, id: str | None = None) -> AsyncGenerator[Change, None]:
        """What exists now, then every change; goes on until it is closed or the connection breaks.

        With an id the first change says created or destroyed; without, all that exists comes first and then
        one change of type bootstrapped. It has no deadline: iterate inside asyncio.timeout, and close the
        generator with contextlib.aclosing.
        """
        options = cosi_pb2.WatchOptions(bootstrap_contents=id is None)
        request = cosi_pb2.WatchRequest(namespace=kind.namespace, type=kind.type, id=id, options=options, api_version=1)
        async with aclosing(self.stream(self.state.Watch, request)) as replies:
            async for reply in replies:
                for event in reply.event:
                    yield decode_change(event)
