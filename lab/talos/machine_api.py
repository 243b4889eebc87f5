"""machine.MachineService: what a machine is asked to do, and what it says about itself."""

# ruff: noqa: N802 - methods are named as the service names them

from __future__ import annotations

import io
import tarfile
import uuid
from typing import TYPE_CHECKING

from google.protobuf.empty_pb2 import Empty
from grpclib.const import Status
from grpclib.exceptions import GRPCError
from grpclib.server import Stream

from lab.talos import apply, etcd_api, kubelet
from lab.talos.request import request_of
from talos_api import common_pb2
from talos_api import machine_pb2 as pb
from talos_api.machine_grpc import MachineServiceBase

if TYPE_CHECKING:
    from lab.talos.machine import Machine

TIME_SYNC_SECONDS = 5.0
KERNEL_RESERVE = 0.03
"""The part of a machine's memory that the kernel keeps to itself."""
BOOT_ID = "/proc/sys/kernel/random/boot_id"
REMEDIES = {
    pb.RebootRequest.Mode.DEFAULT: "reboot",
    pb.RebootRequest.Mode.POWERCYCLE: "reboot",
    pb.RebootRequest.Mode.FORCE: "force-reboot",
}


class MachineApi(MachineServiceBase):
    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    async def ApplyConfiguration(
        self, stream: Stream[pb.ApplyConfigurationRequest, pb.ApplyConfigurationResponse]
    ) -> None:
        answer = await apply.apply(self._machine, await request_of(stream))
        await stream.send_message(pb.ApplyConfigurationResponse(messages=[answer]))

    async def Bootstrap(self, stream: Stream[pb.BootstrapRequest, pb.BootstrapResponse]) -> None:
        await request_of(stream)
        machine = self._machine
        if not machine.bootstrap_allowed:
            raise GRPCError(Status.FAILED_PRECONDITION, "bootstrap is not available yet")
        etcd_api.require_control_plane(machine, "bootstrap")
        if not await self._time_in_sync():
            raise GRPCError(Status.FAILED_PRECONDITION, "time is not in sync yet")
        if machine.disk.etcd_data:
            raise GRPCError(Status.ALREADY_EXISTS, "etcd data directory is not empty")
        machine.etcd.request_bootstrap()
        await stream.send_message(pb.BootstrapResponse(messages=[pb.Bootstrap()]))

    async def _time_in_sync(self) -> bool:
        patience = TIME_SYNC_SECONDS * self._machine.around.pace.scale
        return await self._machine.around.faults.within(patience, lambda: self._machine.time_synced)

    async def Kubeconfig(self, stream: Stream[Empty, common_pb2.Data]) -> None:
        await request_of(stream)
        machine = self._machine
        etcd_api.require_control_plane(machine, "kubeconfig")
        if machine.config is None:
            raise GRPCError(Status.UNIMPLEMENTED, "machine type is not set, cannot use kubeconfig API")
        try:
            text = await machine.membership.kubernetes.kubeconfig(machine.config.endpoint)
        except RuntimeError as error:
            raise GRPCError(Status.UNAVAILABLE, str(error)) from error
        await stream.send_message(common_pb2.Data(bytes=packed("kubeconfig", text.encode())))

    async def Version(self, stream: Stream[Empty, pb.VersionResponse]) -> None:
        await request_of(stream)
        version = pb.Version(
            version=pb.VersionInfo(tag=self._machine.version, os="linux", arch="amd64", sha="lab", go_version="go1.26"),
            platform=pb.PlatformInfo(name="nocloud", mode="cloud"),
            features=pb.FeaturesInfo(rbac=True) if self._machine.config else None,
        )
        await stream.send_message(pb.VersionResponse(messages=[version]))

    async def Hostname(self, stream: Stream[Empty, pb.HostnameResponse]) -> None:
        await request_of(stream)
        await stream.send_message(pb.HostnameResponse(messages=[pb.Hostname(hostname=self._machine.name)]))

    async def Memory(self, stream: Stream[Empty, pb.MemoryResponse]) -> None:
        await request_of(stream)
        total = int(self._machine.boot.memory * 1024 * (1 - KERNEL_RESERVE))
        info = pb.MemInfo(memtotal=total, memfree=total // 2, memavailable=total * 3 // 4)
        await stream.send_message(pb.MemoryResponse(messages=[pb.Memory(meminfo=info)]))

    async def SystemStat(self, stream: Stream[Empty, pb.SystemStatResponse]) -> None:
        await request_of(stream)
        cpus = [pb.CPUStat(idle=1.0) for _ in range(self._machine.boot.cores)]
        stat = pb.SystemStat(boot_time=self._machine.boot_time, cpu_total=pb.CPUStat(idle=len(cpus)), cpu=cpus)
        await stream.send_message(pb.SystemStatResponse(messages=[stat]))

    async def Mounts(self, stream: Stream[Empty, pb.MountsResponse]) -> None:
        await request_of(stream)
        stats = [
            pb.MountStat(filesystem="/dev/sda4", size=size, available=size * 9 // 10, mounted_on="/var")
            for size in list(self._machine.boot.disks.values())[:1]
        ]
        await stream.send_message(pb.MountsResponse(messages=[pb.Mounts(stats=stats)]))

    async def ServiceList(self, stream: Stream[Empty, pb.ServiceListResponse]) -> None:
        await request_of(stream)
        services = [service.info() for service in self._machine.services.all]
        await stream.send_message(pb.ServiceListResponse(messages=[pb.ServiceList(services=services)]))

    async def ServiceRestart(self, stream: Stream[pb.ServiceRestartRequest, pb.ServiceRestartResponse]) -> None:
        id = (await request_of(stream)).id
        self._require_kubelet(id, "restart")
        self._heal("restart")
        self._machine.kubelet.restart()
        answer = pb.ServiceRestart(resp=f'Service "{id}" restarted')
        await stream.send_message(pb.ServiceRestartResponse(messages=[answer]))

    async def ServiceStart(self, stream: Stream[pb.ServiceStartRequest, pb.ServiceStartResponse]) -> None:
        id = (await request_of(stream)).id
        self._require_kubelet(id, "start")
        await stream.send_message(pb.ServiceStartResponse(messages=[pb.ServiceStart(resp=f'Service "{id}" started')]))

    async def ServiceStop(self, stream: Stream[pb.ServiceStopRequest, pb.ServiceStopResponse]) -> None:
        id = (await request_of(stream)).id
        raise GRPCError(Status.UNKNOWN, f'service "{id}" doesn\'t support stop operation via API')

    def _require_kubelet(self, id: str, operation: str) -> None:
        if self._machine.services.get(id) is None:
            raise GRPCError(Status.UNKNOWN, f'service "{id}" not defined')
        if id != "kubelet":
            raise GRPCError(Status.UNKNOWN, f'service "{id}" doesn\'t support {operation} operation via API')

    def _heal(self, remedy: str) -> None:
        for fault in kubelet.FAULTS:
            self._machine.around.faults.heal(fault, self._machine.name, remedy)

    async def Reboot(self, stream: Stream[pb.RebootRequest, pb.RebootResponse]) -> None:
        request = await request_of(stream)
        actor = self._begin("reboot")
        self._heal(REMEDIES[request.mode])
        self._machine.around.spawn(self._machine.restart("rebooting"))
        await stream.send_message(pb.RebootResponse(messages=[pb.Reboot(actor_id=actor)]))

    async def Shutdown(self, stream: Stream[pb.ShutdownRequest, pb.ShutdownResponse]) -> None:
        await request_of(stream)
        actor = self._begin("shutdown")
        self._machine.around.spawn(self._machine.restart("shutting down", power=False))
        await stream.send_message(pb.ShutdownResponse(messages=[pb.Shutdown(actor_id=actor)]))

    async def Reset(self, stream: Stream[pb.ResetRequest, pb.ResetResponse]) -> None:
        request = await request_of(stream)
        actor = self._begin("reset")
        machine = self._machine
        if request.graceful and machine.config is not None and machine.config.is_control_plane:
            machine.membership.remove(machine.name)
        machine.around.spawn(machine.restart("resetting", wipe=True, power=request.reboot))
        await stream.send_message(pb.ResetResponse(messages=[pb.Reset(actor_id=actor)]))

    def _begin(self, sequence: str) -> str:
        actor = str(uuid.uuid4())
        self._machine.events.sequence(sequence, actor)
        return actor

    async def Dmesg(self, stream: Stream[pb.DmesgRequest, common_pb2.Data]) -> None:
        await request_of(stream)
        for line in self._machine.kernel_log:
            await stream.send_message(common_pb2.Data(bytes=line.encode()))

    async def Logs(self, stream: Stream[pb.LogsRequest, common_pb2.Data]) -> None:
        request = await request_of(stream)
        service = self._machine.services.get(request.id)
        if service is None:
            raise GRPCError(Status.UNKNOWN, f'log "{request.id}" was not registered')
        for line in service.log[-request.tail_lines :] if request.tail_lines > 0 else service.log:
            await stream.send_message(common_pb2.Data(bytes=f"{line}\n".encode()))

    async def Read(self, stream: Stream[pb.ReadRequest, common_pb2.Data]) -> None:
        path = (await request_of(stream)).path
        if path != BOOT_ID:
            raise GRPCError(Status.NOT_FOUND, f"stat {path}: no such file or directory")
        await stream.send_message(common_pb2.Data(bytes=f"{self._machine.boot_id}\n".encode()))

    async def Events(self, stream: Stream[pb.EventsRequest, pb.Event]) -> None:
        request = await request_of(stream)
        async for event in self._machine.events.follow(request):
            await stream.send_message(event)

    async def EtcdMemberList(self, stream: Stream[pb.EtcdMemberListRequest, pb.EtcdMemberListResponse]) -> None:
        answer = etcd_api.member_list(self._machine, await request_of(stream))
        await stream.send_message(pb.EtcdMemberListResponse(messages=[answer]))

    async def EtcdStatus(self, stream: Stream[Empty, pb.EtcdStatusResponse]) -> None:
        await request_of(stream)
        await stream.send_message(pb.EtcdStatusResponse(messages=[etcd_api.status(self._machine)]))

    async def EtcdLeaveCluster(self, stream: Stream[pb.EtcdLeaveClusterRequest, pb.EtcdLeaveClusterResponse]) -> None:
        await request_of(stream)
        etcd_api.leave(self._machine)
        await stream.send_message(pb.EtcdLeaveClusterResponse(messages=[pb.EtcdLeaveCluster()]))

    async def EtcdForfeitLeadership(
        self, stream: Stream[pb.EtcdForfeitLeadershipRequest, pb.EtcdForfeitLeadershipResponse]
    ) -> None:
        await request_of(stream)
        etcd_api.require_quorum(self._machine, "etcd forfeit leadership")
        member = self._machine.membership.forfeit(self._machine.name)
        answer = pb.EtcdForfeitLeadership(member=member)
        await stream.send_message(pb.EtcdForfeitLeadershipResponse(messages=[answer]))

    async def EtcdRemoveMemberByID(
        self, stream: Stream[pb.EtcdRemoveMemberByIDRequest, pb.EtcdRemoveMemberByIDResponse]
    ) -> None:
        etcd_api.remove(self._machine, (await request_of(stream)).member_id)
        await stream.send_message(pb.EtcdRemoveMemberByIDResponse(messages=[pb.EtcdRemoveMemberByID()]))


def packed(name: str, content: bytes) -> bytes:
    """A tar.gz of one file."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        header = tarfile.TarInfo(name)
        header.size, header.mode = len(content), 0o600
        archive.addfile(header, io.BytesIO(content))
    return buffer.getvalue()
