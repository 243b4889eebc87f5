"""The Talos emulator refuses the lies it could tell, and comes up as Talos does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from google.protobuf.empty_pb2 import Empty
from grpclib.client import UnaryUnaryMethod
from grpclib.const import Status
from grpclib.exceptions import GRPCError

from talos_api import cosi_pb2, machine_pb2
from talos_api import resources as kinds
from talos_api.client import ApplyMode, TalosClient
from talos_api.errors import Reason
from talos_api.resources import ChangeType
from tests.talos_lab import (
    IMAGE,
    TalosLab,
    address,
    boot_id,
    eventually,
    refusal,
    state_of,
    talos_lab,
    unreachable,
    until,
    up,
)
from tests.talos_pki import TestAuthority


@pytest.fixture
async def lab(tmp_path: Path) -> AsyncIterator[TalosLab]:
    async with talos_lab(tmp_path) as made:
        yield made


@pytest.mark.parametrize(
    "changes",
    [
        {"image": None},
        {"image": replace(IMAGE, whole=False)},
        {"image": replace(IMAGE, url="https://factory.talos.dev/image/abc/v1.13.9/metal-amd64.qcow2")},
        {"address": None},
    ],
    ids=["blank disk", "truncated image", "wrong platform", "no address"],
)
async def test_machine_that_cannot_boot_answers_nowhere(lab: TalosLab, changes: dict[str, object]) -> None:
    await lab.power_on(1, "cp-1", **changes)
    await lab.power_on(2, "cp-2")
    await lab.maintenance(2)
    assert (await refusal(lab.client(1, secure=False).disks)).reason is Reason.UNREACHABLE
    assert lab.machines.addresses(1001) == []


async def test_maintenance_mode_shows_little_and_does_nothing_else(lab: TalosLab) -> None:
    await lab.power_on(1, "cp-1")
    client = await lab.maintenance(1)
    version = await client.version()
    status = await client.get(kinds.MACHINE_STATUS, kinds.MACHINE_STATUS_ID)
    assert (version.version.tag, version.platform.name, version.platform.mode) == ("v1.13.9", "nocloud", "cloud")
    assert status.spec["stage"] == "maintenance"
    assert (await refusal(client.bootstrap)).status is Status.PERMISSION_DENIED
    assert lab.machines.addresses(1001) == [f"{address(1)}/24"]


async def test_second_apply_without_credentials_is_refused_at_tls(lab: TalosLab) -> None:
    await lab.configured(1, "cp-1")
    again = lab.client(1, secure=False)
    error = await refusal(lambda: again.apply(lab.config(1, "cp-1")))
    assert error.reason is Reason.REFUSED
    assert "certificate required" in error.message.lower().replace("_", " ")


async def test_connection_of_maintenance_mode_does_not_survive_it(lab: TalosLab) -> None:
    await lab.power_on(1, "cp-1")
    early = await lab.maintenance(1)
    await early.apply(lab.config(1, "cp-1"))
    await eventually(lab.client(1).version)
    assert (await refusal(early.version)).reason is Reason.REFUSED


async def test_credentials_of_another_cluster_are_refused(lab: TalosLab) -> None:
    await lab.configured(1, "cp-1")
    lab.credentials = TestAuthority("others").credentials()
    assert (await refusal(lab.client(1).version)).reason is Reason.UNTRUSTED


async def test_invalid_config_is_refused_with_the_reason(lab: TalosLab) -> None:
    await lab.power_on(1, "cp-1")
    client = await lab.maintenance(1)
    lab.problem = "1 error occurred:\n\t* install disk is required"
    error = await refusal(lambda: client.apply(lab.config(1, "cp-1")))
    assert (error.status, error.message) == (Status.INVALID_ARGUMENT, lab.problem)
    assert (await client.get(kinds.MACHINE_STATUS, "machine")).spec["stage"] == "maintenance"


async def test_apply_answers_without_reboot_in_maintenance(lab: TalosLab) -> None:
    await lab.power_on(1, "cp-1")
    client = await lab.maintenance(1)
    dry = await client.apply(lab.config(1, "cp-1"), dry_run=True)
    assert "skipped in dry-run" in dry.mode_details
    assert (await client.apply(lab.config(1, "cp-1"))).mode == ApplyMode.NO_REBOOT


async def test_worker_waits_for_a_control_plane_to_sign_its_certificate(lab: TalosLab) -> None:
    await lab.power_on(101, "w-1")
    await (await lab.maintenance(101)).apply(lab.config(101, "w-1", "worker"))
    await unreachable(lab.client(101))
    await lab.configured(1, "cp-1")
    assert (await eventually(lab.client(101).hostname)) == "w-1"


async def test_bootstrap_rules(lab: TalosLab) -> None:
    plane = await lab.configured(1, "cp-1")
    worker = await lab.configured(101, "w-1", "worker")
    assert await state_of(plane, "etcd") == "Preparing"
    assert (await refusal(worker.bootstrap)).status is Status.UNIMPLEMENTED
    await eventually(plane.bootstrap)
    error = await refusal(plane.bootstrap)
    assert (error.status, error.message) == (Status.ALREADY_EXISTS, "etcd data directory is not empty")
    await up(plane, "etcd")
    assert lab.cluster.calls[:2] == [("bootstrap", "cp-1"), ("join", "cp-1")]


async def test_time_must_be_in_sync_to_bootstrap(lab: TalosLab) -> None:
    lab.fault("time-not-in-sync")
    plane = await lab.configured(1, "cp-1")
    error = await refusal(plane.bootstrap)
    assert (error.status, error.message) == (Status.FAILED_PRECONDITION, "time is not in sync yet")
    assert (await plane.get(kinds.TIME_STATUS, kinds.TIME_STATUS_ID)).spec["synced"] is False
    assert await state_of(plane, "kubelet") == "Waiting"
    lab.faults.remove("time-not-in-sync")
    await eventually(plane.bootstrap)
    await up(plane, "kubelet")


async def test_control_planes_join_one_after_the_other(lab: TalosLab) -> None:
    clients = await lab.cluster_of(3, workers=1)
    joins = [name for call, name in lab.cluster.calls if call == "join"]
    assert joins[0] == "cp-1"
    assert sorted(joins) == ["cp-1", "cp-2", "cp-3"]
    lists = [await client.etcd_members() for client in clients[:3]]
    assert all([member.hostname for member in each] == joins for each in lists)
    assert not any(member.is_learner for member in lists[0])
    assert lists[0][0].peer_urls == [f"https://{address(1)}:2380"]
    leaders = {(await client.etcd_status()).leader for client in clients[:3]}
    assert leaders == {lists[0][0].id}
    assert ("vip", "10.0.0.10") in lab.cluster.calls


async def test_shared_address_is_on_one_control_plane_and_moves(lab: TalosLab) -> None:
    first, second, _ = await lab.cluster_of(3)

    async def holds(client: TalosClient) -> bool:
        return "10.0.0.10/32" in [each.spec["address"] for each in await client.list(kinds.ADDRESS_STATUS)]

    await up(second, "etcd")
    assert (await holds(first), await holds(second)) == (True, False)
    await lab.machines.power_off(1001, graceful=True)
    heirs = [second, lab.client(3)]
    async with asyncio.timeout(20):
        while not any([await holds(heir) for heir in heirs]):  # noqa: ASYNC110 - asking again is what a client does
            await asyncio.sleep(0.05)


async def test_kubelet_registers_what_the_config_says(lab: TalosLab) -> None:
    await lab.cluster_of(1, workers=1)
    node = lab.cluster.nodes["w-1"]
    assert (node.address, node.role, node.vmid, node.cores) == (address(101), "worker", 1101, 2)
    assert node.config["cluster"]["clusterName"] == "lab"
    assert {document["kind"] for document in node.documents} == {"HostnameConfig", "LinkAliasConfig", "LinkConfig"}


async def test_machine_runs_when_all_its_services_do(lab: TalosLab) -> None:
    plane = await lab.configured(1, "cp-1")
    await up(plane, "kubelet")
    status = await plane.get(kinds.MACHINE_STATUS, "machine")
    unmet = {each["name"]: each["reason"] for each in status.spec["status"]["unmetConditions"]}
    assert status.spec["stage"] == "booting"
    assert unmet["services"] == "etcd not running"
    await plane.bootstrap()
    async with aclosing(plane.watch(kinds.MACHINE_STATUS, "machine")) as changes, asyncio.timeout(20):
        stages = [change.resource.spec["stage"] async for change in _until_running(changes)]
    assert stages[-1] == "running"


async def test_machine_is_ready_only_when_its_node_is(lab: TalosLab) -> None:
    (plane,) = await lab.cluster_of(1)
    await up(plane, "etcd")
    status = await plane.get(kinds.MACHINE_STATUS, "machine")
    unmet = {each["name"]: each["reason"] for each in status.spec["status"]["unmetConditions"]}
    assert unmet == {"nodeReady": 'node "cp-1" is not ready'}
    lab.cluster.ready_nodes.add("cp-1")
    async with aclosing(plane.watch(kinds.MACHINE_STATUS, "machine")) as changes, asyncio.timeout(20):
        async for change in changes:
            if change.resource and change.resource.spec["status"]["ready"]:
                break


async def _until_running(changes):  # type: ignore[no-untyped-def]
    async for change in changes:
        yield change
        if change.resource.spec["stage"] == "running":
            return


async def test_watch_of_a_kind_begins_with_what_exists(lab: TalosLab) -> None:
    plane = await lab.configured(1, "cp-1")
    await up(plane, "kubelet")
    async with aclosing(plane.watch(kinds.SERVICE)) as changes, asyncio.timeout(20):
        seen: dict[str, bool] = {}
        async for change in changes:
            if change.type is ChangeType.BOOTSTRAPPED:
                break
            assert change.resource is not None
            seen[change.resource.id] = change.resource.spec["healthy"]
        assert seen["kubelet"] is True
        assert "etcd" not in seen
        await plane.bootstrap()
        async for change in changes:
            if change.resource and change.resource.id == "etcd" and change.resource.spec["healthy"]:
                break


async def test_watch_of_what_is_not_there(lab: TalosLab) -> None:
    plane = await lab.configured(1, "cp-1")
    async with aclosing(plane.watch(kinds.DIAGNOSTIC, "address-overlap")) as changes, asyncio.timeout(20):
        assert (await anext(changes)).type is ChangeType.DESTROYED
        lab.fault("diagnostics-warning", "cp-1")
        created = await anext(changes)
        assert created.type is ChangeType.CREATED
        assert created.resource is not None
        assert "overlap" in created.resource.spec["message"]
        lab.faults.remove("diagnostics-warning")
        assert (await anext(changes)).type is ChangeType.DESTROYED


async def test_kubeconfig_names_the_endpoint(lab: TalosLab) -> None:
    clients = await lab.cluster_of(1, workers=1)
    assert await clients[0].kubeconfig() == "server: https://10.0.0.10:6443\n"
    assert (await refusal(clients[1].kubeconfig)).status is Status.UNIMPLEMENTED


async def test_resources_that_health_checks_read(lab: TalosLab) -> None:
    (plane,) = await lab.cluster_of(1)
    await up(plane, "etcd")
    pods = [pod.id for pod in await plane.list(kinds.STATIC_POD_STATUS)]
    assert pods == [f"kube-system/kube-{each}-cp-1" for each in ("apiserver", "controller-manager", "scheduler")]
    assert (await plane.get(kinds.BOOTSTRAP_MANIFESTS_CONFIG, "manifests")).spec["cniName"] == "none"
    assert (await plane.get(kinds.VOLUME_STATUS, "EPHEMERAL")).spec["size"] > 30 * 10**9
    assert (await plane.get(kinds.HOSTNAME_STATUS, "hostname")).spec["hostname"] == "cp-1"
    assert [disk.spec["dev_path"] for disk in await plane.list(kinds.DISK)] == ["/dev/sda"]
    assert [member.spec["machineType"] for member in await plane.list(kinds.MEMBER)] == ["controlplane"]
    assert yaml.safe_load((await plane.get(kinds.KUBELET_SPEC, "kubelet")).spec["image"]).endswith(":v1.36.4")
    config = await plane.get(kinds.MACHINE_CONFIG, "v1alpha1")
    assert config.spec.encode() == lab.config(1, "cp-1")
    assert (await plane.memory()).memtotal > 3 * 1024**2
    assert len((await plane.system_stat()).cpu) == 2
    definitions = {each.spec["type"]: each for each in await plane.list(kinds.RESOURCE_DEFINITION)}
    assert "machinestatus" in definitions[kinds.MACHINE_STATUS.type].spec["aliases"]
    assert (await refusal(lambda: plane.list(kinds.Kind("runtime", "Wonders.talos.dev")))).status is (
        Status.PERMISSION_DENIED
    )
    assert (await refusal(lambda: plane.get(kinds.DISK, "sdz"))).status is Status.NOT_FOUND


async def test_routing(lab: TalosLab) -> None:
    first, second, worker = await lab.cluster_of(2, workers=1)
    both = [("nodes", address(1)), ("nodes", address(2))]
    reply = await first.machine.Hostname(Empty(), metadata=both)
    assert [(each.metadata.hostname, each.hostname) for each in reply.messages] == [
        (address(1), "cp-1"),
        (address(2), "cp-2"),
    ]
    one = await first.machine.Hostname(Empty(), metadata=[("node", address(101))])
    assert [(each.metadata.hostname, each.hostname) for each in one.messages] == [("", "w-1")]
    with pytest.raises(GRPCError, match="no request forwarding"):
        await worker.machine.Hostname(Empty(), metadata=[("node", address(1))])
    own = await worker.machine.Hostname(Empty(), metadata=[("node", address(101))])
    assert own.messages[0].hostname == "w-1"
    request = cosi_pb2.GetRequest(namespace="runtime", type=kinds.MACHINE_STATUS.type, id="machine")
    with pytest.raises(GRPCError, match="one-2-many proxying is not supported"):
        await first.state.Get(request, metadata=both)
    got = await first.state.Get(request, metadata=[("node", address(2))])
    assert "stage: running" in got.resource.spec.yaml_spec
    await lab.machines.power_off(1002, graceful=True)
    reply = await first.machine.Hostname(Empty(), metadata=both)
    assert reply.messages[1].metadata.error.startswith("rpc error")
    with pytest.raises(GRPCError, match="no route to host"):
        await first.machine.Hostname(Empty(), metadata=[("node", address(2))])
    await unreachable(second)


async def test_roles_of_the_certificate_count(lab: TalosLab) -> None:
    await lab.configured(1, "cp-1")
    lab.credentials = lab.authority.credentials("os:reader")
    reader = lab.client(1)
    assert await reader.hostname() == "cp-1"
    assert (await refusal(reader.bootstrap)).status is Status.PERMISSION_DENIED
    assert (await refusal(reader.reboot)).status is Status.PERMISSION_DENIED


async def test_reboot_goes_down_and_comes_back(lab: TalosLab) -> None:
    first, second, third = await lab.cluster_of(3)
    before = await boot_id(second)
    lab.cluster.calls.clear()
    await second.reboot()
    await until(lambda: ("start_kubelet", "cp-2") in lab.cluster.calls and ("join", "cp-2") in lab.cluster.calls)
    assert lab.cluster.calls.index(("leave", "cp-2")) < lab.cluster.calls.index(("join", "cp-2"))
    assert lab.cluster.calls.index(("stop_kubelet", "cp-2")) < lab.cluster.calls.index(("start_kubelet", "cp-2"))
    await eventually(second.version)
    assert await boot_id(second) != before
    assert len(await first.etcd_members()) == 3
    assert len(await third.etcd_members()) == 3


async def test_reset_forgets_everything(lab: TalosLab) -> None:
    first, _, third = await lab.cluster_of(3)
    await third.reset()
    await lab.maintenance(3)
    assert [member.hostname for member in await first.etcd_members()] == ["cp-1", "cp-2"]


async def test_two_of_three_control_planes_down_is_no_quorum(lab: TalosLab) -> None:
    first, second, _ = await lab.cluster_of(3)
    await lab.machines.power_off(1003, graceful=False)
    assert len(await first.etcd_members()) == 3
    await lab.machines.power_off(1002, graceful=False)
    await until_unhealthy(first)
    error = await refusal(first.etcd_members)
    assert (error.status, error.message) == (Status.UNAVAILABLE, "etcdserver: no leader")
    await lab.power_on(2, "cp-2")
    await up(second, "etcd") if await eventually(second.version) else None
    await up(first, "etcd")


async def until_unhealthy(client) -> None:  # type: ignore[no-untyped-def]
    async with asyncio.timeout(20):
        while (await client.services())["etcd"].health.healthy:  # noqa: ASYNC110 - polling is the point
            await asyncio.sleep(0.01)


async def test_leaving_and_forfeiting(lab: TalosLab) -> None:
    first, second, _ = await lab.cluster_of(3)
    heir = await first.etcd_forfeit_leadership()
    assert heir in ("cp-2", "cp-3")
    assert await first.etcd_forfeit_leadership() == ""
    await second.etcd_leave()
    await until(lambda: "cp-2" not in lab.cluster.control_planes)
    assert "cp-2" not in {member.hostname for member in await first.etcd_members()}
    assert (await refusal(lambda: first.etcd_remove_member(42))).status is Status.NOT_FOUND


async def test_config_with_another_address_gives_the_machine_two(lab: TalosLab) -> None:
    await lab.power_on(1, "cp-1")
    await (await lab.maintenance(1)).apply(lab.config(1, "cp-1", ip=address(9)))
    moved = lab.client(9)
    assert await eventually(moved.hostname) == "cp-1"
    found = [each.spec["address"] for each in await moved.list(kinds.ADDRESS_STATUS)]
    assert found == [f"{address(1)}/24", f"{address(9)}/24"]


async def test_apply_with_credentials_in_every_mode(lab: TalosLab) -> None:
    (plane,) = await lab.cluster_of(1)
    staged = await plane.apply(lab.config(1, "renamed"), ApplyMode.STAGED)
    assert staged.mode == ApplyMode.STAGED
    assert await plane.hostname() == "cp-1"
    now = await plane.apply(lab.config(1, "cp-1"), ApplyMode.AUTO)
    assert now.mode == ApplyMode.NO_REBOOT
    tried = machine_pb2.ApplyConfigurationRequest(data=lab.config(1, "tried"), mode=ApplyMode.TRY)
    tried.try_mode_timeout.FromMilliseconds(100)
    await plane.machine.ApplyConfiguration(tried)
    await until(lambda: "tried" in lab.machines.stages())
    await until(lambda: "cp-1" in lab.machines.stages())
    error = await refusal(lambda: plane.apply(lab.config(1, "cp-1", "worker"), ApplyMode.NO_REBOOT))
    assert error.status is Status.INVALID_ARGUMENT
    again = await plane.apply(lab.config(1, "cp-1"), ApplyMode.REBOOT)
    assert again.mode == ApplyMode.REBOOT


async def test_destroyed_machines_take_their_cluster_with_them(lab: TalosLab) -> None:
    await lab.cluster_of(1)
    old = lab.cluster
    await lab.machines.power_off(1001, graceful=True)
    await lab.machines.erase(1001)
    assert old.closed
    plane = await lab.configured(1, "cp-1")
    assert await state_of(plane, "etcd") == "Preparing"
    await eventually(plane.bootstrap)
    reborn = lab.clusters["lab-cluster.1"]
    await until(lambda: "cp-1" in reborn.nodes)


async def test_method_that_is_not_emulated_says_so(lab: TalosLab) -> None:
    plane = await lab.configured(1, "cp-1")
    unknown = UnaryUnaryMethod(plane.channel, "/machine.MachineService/Netstat", Empty, Empty)
    with pytest.raises(GRPCError) as caught:
        await unknown(Empty())
    assert caught.value.status is Status.UNIMPLEMENTED
    assert lab.log.entries()[-1]["method"] == "Netstat"


async def test_requests_are_logged_with_who_writes(lab: TalosLab) -> None:
    plane = await lab.configured(1, "cp-1")
    await plane.disks()
    await refusal(lambda: plane.apply(b"", ApplyMode.AUTO))
    entries = [(entry["method"], entry["write"]) for entry in lab.log.entries()]
    assert ("ApplyConfiguration", True) in entries
    assert ("Disks", False) in entries
