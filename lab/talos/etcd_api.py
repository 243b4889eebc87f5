"""What a control plane answers about etcd."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grpclib.const import Status
from grpclib.exceptions import GRPCError

from talos_api import machine_pb2 as pb

if TYPE_CHECKING:
    from lab.talos.machine import Machine

ETCD_VERSION = "3.6.11"
DATABASE_BYTES = 20 * 1024**2


def require_control_plane(machine: Machine, api: str) -> None:
    if machine.config is None:
        raise GRPCError(Status.UNIMPLEMENTED, f"machine type is not set, cannot use {api} API")
    if not machine.config.is_control_plane:
        raise GRPCError(Status.UNIMPLEMENTED, f"{api} is only available on control plane nodes")


def require_quorum(machine: Machine, api: str) -> None:
    require_control_plane(machine, api)
    if not machine.membership.members:
        raise GRPCError(Status.UNKNOWN, "error building etcd client: no etcd endpoints are known yet")
    if not machine.etcd.healthy:
        raise GRPCError(Status.UNAVAILABLE, "etcdserver: no leader")


def member_list(machine: Machine, request: pb.EtcdMemberListRequest) -> pb.EtcdMembers:
    require_quorum(machine, "member list")
    if request.query_local:
        _require_local(machine)
    members = list(machine.membership.members.values())
    return pb.EtcdMembers(
        legacy_members=[member.name for member in members], members=[member.message() for member in members]
    )


def status(machine: Machine) -> pb.EtcdStatus:
    require_control_plane(machine, "etcd status")
    _require_local(machine)
    member = machine.membership.members[machine.name]
    leader = machine.membership.leader if machine.etcd.healthy else None
    report = pb.EtcdMemberStatus(
        member_id=member.id,
        protocol_version=ETCD_VERSION,
        storage_version=".".join([*ETCD_VERSION.split(".")[:2], "0"]),
        db_size=DATABASE_BYTES,
        db_size_in_use=DATABASE_BYTES // 2,
        leader=leader.id if leader else 0,
        raft_index=1,
        raft_term=2,
        raft_applied_index=1,
        errors=[] if leader else ["etcdserver: no leader"],
        is_learner=member.learner,
    )
    return pb.EtcdStatus(member_status=report)


def leave(machine: Machine) -> None:
    require_quorum(machine, "etcd leave")
    machine.membership.remove(machine.name)
    machine.disk.etcd_data = False
    machine.etcd.stop()


def remove(machine: Machine, member_id: int) -> None:
    require_quorum(machine, "etcd remove member")
    for member in list(machine.membership.members.values()):
        if member.id == member_id:
            machine.membership.remove(member.name)
            return
    raise GRPCError(Status.NOT_FOUND, "etcdserver: member not found")


def _require_local(machine: Machine) -> None:
    if not machine.etcd.running or machine.name not in machine.membership.members:
        raise GRPCError(Status.UNKNOWN, "failed to query etcd status: context deadline exceeded")
