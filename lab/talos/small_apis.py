"""storage.StorageService and time.TimeService."""

# ruff: noqa: N802 - methods are named as the service names them

from __future__ import annotations

from typing import TYPE_CHECKING

from google.protobuf.empty_pb2 import Empty
from google.protobuf.timestamp_pb2 import Timestamp
from grpclib.const import Status
from grpclib.exceptions import GRPCError
from grpclib.server import Stream

from lab.talos.request import request_of
from talos_api import storage_pb2, time_pb2
from talos_api.storage_grpc import StorageServiceBase
from talos_api.time_grpc import TimeServiceBase

if TYPE_CHECKING:
    from lab.talos.machine import Machine

TIME_SERVER = "time.cloudflare.com"


class StorageApi(StorageServiceBase):
    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    async def Disks(self, stream: Stream[Empty, storage_pb2.DisksResponse]) -> None:
        await request_of(stream)
        disks = [
            storage_pb2.Disk(
                size=size,
                model="QEMU HARDDISK",
                device_name=f"/dev/sd{chr(97 + index)}",
                type=storage_pb2.Disk.DiskType.HDD,
                system_disk=index == 0,
                subsystem="/sys/class/block",
            )
            for index, size in enumerate(self._machine.boot.disks.values())
        ]
        await stream.send_message(storage_pb2.DisksResponse(messages=[storage_pb2.Disks(disks=disks)]))


class TimeApi(TimeServiceBase):
    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    async def Time(self, stream: Stream[Empty, time_pb2.TimeResponse]) -> None:
        await request_of(stream)
        await self._answer(stream, TIME_SERVER)

    async def TimeCheck(self, stream: Stream[time_pb2.TimeRequest, time_pb2.TimeResponse]) -> None:
        await self._answer(stream, (await request_of(stream)).server)

    async def _answer(
        self,
        stream: Stream[Empty, time_pb2.TimeResponse] | Stream[time_pb2.TimeRequest, time_pb2.TimeResponse],
        server: str,
    ) -> None:
        if not self._machine.time_synced:
            raise GRPCError(Status.UNKNOWN, f'error querying NTP server "{server}": i/o timeout')
        now = Timestamp()
        now.GetCurrentTime()
        answer = time_pb2.Time(server=server, localtime=now, remotetime=now)
        await stream.send_message(time_pb2.TimeResponse(messages=[answer]))
