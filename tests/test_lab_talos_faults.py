"""Every Talos fault blocks honestly, and what it blocked goes on when it is cleared."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from talos_api import resources as kinds
from talos_api.client import RebootMode, TalosClient
from talos_api.errors import Reason, TalosError
from tests.talos_lab import TalosLab, address, boot_id, eventually, refusal, state_of, talos_lab, unreachable, until, up


@pytest.fixture
async def lab(tmp_path: Path) -> AsyncIterator[TalosLab]:
    async with talos_lab(tmp_path) as made:
        yield made


async def holds(question: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(20):
        while not await question():  # noqa: ASYNC110 - asking again is what a client does
            await asyncio.sleep(0.01)


async def reaches(client: TalosClient, service: str, state: str) -> None:
    async def reached() -> bool:
        return await state_of(client, service) == state

    await holds(reached)


@pytest.mark.parametrize("fault", ["vm-does-not-boot", "wrong-vlan"])
async def test_machine_without_api(lab: TalosLab, fault: str) -> None:
    lab.fault(fault, "cp-1")
    await lab.power_on(1, "cp-1")
    await lab.power_on(2, "cp-2")
    await lab.maintenance(2)
    assert (await refusal(lab.client(1, secure=False).disks)).reason is Reason.UNREACHABLE
    assert bool(lab.machines.addresses(1001)) == (fault == "wrong-vlan")
    lab.faults.remove(fault)
    await lab.maintenance(1)


async def test_wrong_vlan_strikes_a_running_machine_too(lab: TalosLab) -> None:
    client = await lab.configured(1, "cp-1")
    lab.fault("wrong-vlan", "cp-1")
    await unreachable(client)
    lab.faults.remove("wrong-vlan")
    assert await eventually(client.hostname) == "cp-1"


async def test_apply_hangs(lab: TalosLab) -> None:
    lab.fault("apply-hangs", "cp-1")
    await lab.power_on(1, "cp-1")
    await lab.maintenance(1)
    hasty = lab.client(1, secure=False, timeout=0.2)
    assert (await refusal(lambda: hasty.apply(lab.config(1, "cp-1")))).reason is Reason.TIMEOUT
    status = await (await lab.maintenance(1)).get(kinds.MACHINE_STATUS, "machine")
    assert status.spec["stage"] == "maintenance"
    lab.faults.remove("apply-hangs")
    await (await lab.maintenance(1)).apply(lab.config(1, "cp-1"))
    await eventually(lab.client(1).version)


async def test_apply_lost(lab: TalosLab) -> None:
    lab.fault("apply-lost", "cp-1")
    await lab.power_on(1, "cp-1")
    client = await lab.maintenance(1)
    await client.apply(lab.config(1, "cp-1"))
    await lab.configured(2, "cp-2")
    assert (await client.get(kinds.MACHINE_STATUS, "machine")).spec["stage"] == "maintenance"
    lab.faults.remove("apply-lost")
    await eventually(lab.client(1).version)


async def test_foreign_ca(lab: TalosLab) -> None:
    lab.fault("foreign-ca", "cp-1")
    await lab.power_on(1, "cp-1")
    stranger = lab.client(1, secure=False)

    async def refused() -> bool:
        return (await refusal(stranger.disks)).reason is Reason.REFUSED

    await holds(refused)
    assert (await refusal(lab.client(1).version)).reason is Reason.UNTRUSTED
    lab.faults.remove("foreign-ca")
    await lab.maintenance(1)


async def test_talos_api_flaps(lab: TalosLab) -> None:
    client = await lab.configured(1, "cp-1")
    lab.fault("talos-api-flaps", "cp-1", seconds="0.2")
    await unreachable(client)
    await eventually(client.version)
    await unreachable(client)
    lab.faults.remove("talos-api-flaps")
    await eventually(client.version)


async def test_etcd_never_joins(lab: TalosLab) -> None:
    lab.fault("etcd-never-joins", "cp-2")
    clients = [await lab.configured(number, f"cp-{number}") for number in (1, 2, 3)]
    await eventually(clients[0].bootstrap)
    await until(lambda: "cp-3" in lab.cluster.control_planes)
    assert await state_of(clients[1], "etcd") == "Preparing"
    assert [member.hostname for member in await clients[1].etcd_members()] == ["cp-1", "cp-3"]
    assert (await refusal(lambda: clients[1].etcd_members(local=True))).reason is Reason.STATUS
    lab.faults.remove("etcd-never-joins")
    await up(clients[1], "etcd")


async def test_a_learner_that_stays_keeps_others_out(lab: TalosLab) -> None:
    lab.fault("etcd-learner-stays", "cp-2")
    first, second = await lab.configured(1, "cp-1"), await lab.configured(2, "cp-2")
    await eventually(first.bootstrap)
    await reaches(second, "etcd", "Running")
    third = await lab.configured(3, "cp-3")
    await up(third, "kubelet")
    members = await first.etcd_members()
    assert [(member.hostname, member.is_learner) for member in members] == [("cp-1", False), ("cp-2", True)]
    assert (await second.services())["etcd"].health.healthy is False
    assert (await second.etcd_status()).is_learner
    assert await state_of(third, "etcd") == "Preparing"
    assert "cp-2" not in lab.cluster.control_planes
    lab.faults.remove("etcd-learner-stays")
    await up(second, "etcd")
    await up(third, "etcd")


async def test_etcd_quorum_lost(lab: TalosLab) -> None:
    (plane,) = await lab.cluster_of(1)
    await up(plane, "etcd")
    lab.fault("etcd-quorum-lost")

    async def unhealthy() -> bool:
        return not (await plane.services())["etcd"].health.healthy

    await holds(unhealthy)
    assert (await refusal(plane.etcd_members)).message == "etcdserver: no leader"
    lab.faults.remove("etcd-quorum-lost")
    await up(plane, "etcd")


@pytest.mark.parametrize("ready", [True, False])
async def test_kubelet_waiting_for_volumes(lab: TalosLab, ready: bool) -> None:
    _, worker = await lab.cluster_of(1, workers=1)
    lab.fault("kubelet-waiting-for-volumes", "w-1", ready=str(ready).lower())
    await reaches(worker, "kubelet", "Waiting")
    events = (await worker.services())["kubelet"].events.events
    assert "volumes" in events[-1].msg
    await until(lambda: ("w-1" in lab.cluster.nodes) == ready)
    lab.faults.remove("kubelet-waiting-for-volumes")
    await up(worker, "kubelet")
    await until(lambda: "w-1" in lab.cluster.nodes)


@pytest.mark.parametrize("fault", ["kubelet-dead", "node-ready-lies"])
async def test_dead_kubelet_and_one_whose_node_says_ready(lab: TalosLab, fault: str) -> None:
    _, worker = await lab.cluster_of(1, workers=1)
    lab.fault(fault, "w-1")
    await reaches(worker, "kubelet", "Failed")
    await until(lambda: ("w-1" in lab.cluster.nodes) == (fault == "node-ready-lies"))
    status = await worker.get(kinds.MACHINE_STATUS, "machine")
    assert {"name": "services", "reason": "kubelet not running"} in status.spec["status"]["unmetConditions"]
    lab.faults.remove(fault)
    await up(worker, "kubelet")


async def test_kubelet_fault_can_be_one_that_a_remedy_ends(lab: TalosLab) -> None:
    _, worker = await lab.cluster_of(1, workers=1)
    lab.fault("kubelet-waiting-for-volumes", "w-1", heals="restart")
    await reaches(worker, "kubelet", "Waiting")
    assert "restarted" in await worker.restart_service("kubelet")
    await up(worker, "kubelet")
    lab.fault("kubelet-dead", "w-1", heals="force-reboot")
    await reaches(worker, "kubelet", "Failed")
    await worker.restart_service("kubelet")
    await reaches(worker, "kubelet", "Failed")
    before = await boot_id(worker)
    await worker.reboot(RebootMode.FORCE)

    async def rebooted() -> bool:
        return await eventually(lambda: boot_id(worker)) != before

    await holds(rebooted)
    await up(worker, "kubelet")
    assert "doesn't support restart" in (await refusal(lambda: worker.restart_service("apid"))).message


async def test_worker_never_registers_though_its_kubelet_runs(lab: TalosLab) -> None:
    lab.fault("worker-never-registers", "w-1")
    plane = await lab.configured(1, "cp-1")
    worker = await lab.configured(101, "w-1", "worker")
    await eventually(plane.bootstrap)
    await until(lambda: "cp-1" in lab.cluster.nodes)
    await up(worker, "kubelet")
    assert "w-1" not in lab.cluster.nodes
    lab.faults.remove("worker-never-registers")
    await until(lambda: "w-1" in lab.cluster.nodes)


async def test_wrong_node_name(lab: TalosLab) -> None:
    lab.fault("wrong-node-name", "cp-1")
    plane = await lab.configured(1, "cp-1")
    await eventually(plane.bootstrap)
    await until(lambda: bool(lab.cluster.nodes))
    assert next(iter(lab.cluster.nodes)).startswith("talos-")
    lab.faults.remove("wrong-node-name")
    await until(lambda: list(lab.cluster.nodes) == ["cp-1"])


async def test_double_address(lab: TalosLab) -> None:
    plane = await lab.configured(1, "cp-1")

    async def addresses(*expected: str) -> bool:
        return [each.spec["address"] for each in await plane.list(kinds.ADDRESS_STATUS)] == list(expected)

    lab.fault("double-address", "cp-1")
    await holds(lambda: addresses(f"{address(1)}/24", "127.0.20.254/24"))
    lab.faults.remove("double-address")
    await holds(lambda: addresses(f"{address(1)}/24"))


async def test_a_fault_on_one_node_leaves_the_others_alone(lab: TalosLab) -> None:
    lab.fault("kubelet-dead", "cp-2")
    first, second = await lab.configured(1, "cp-1"), await lab.configured(2, "cp-2")
    await up(first, "kubelet")
    assert await state_of(second, "kubelet") == "Failed"


async def test_errors_name_no_secret(lab: TalosLab) -> None:
    await lab.configured(1, "cp-1")
    error: TalosError = await refusal(lab.client(1, secure=False).disks)
    assert "PRIVATE" not in str(error)
