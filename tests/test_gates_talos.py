"""Gates on machines, etcd and kubelets, over mutual TLS with Ed25519 certificates as Talos speaks it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from grpclib.const import Status

from gates import talos
from gates.etcd import EtcdSession
from gates.kubelets import KubeletsSession
from gates.registry import run
from talos_api.errors import Reason, TalosError
from talos_api.resources import ADDRESS_STATUS, DIAGNOSTIC, KUBELET_SPEC, MACHINE_STATUS, TIME_STATUS
from tests.gates_objects import CP, NODES
from tests.gates_runs import PATIENCE, evidence, fatal, findings, noticed, observed, until, untold
from tests.gates_talos import FakeTalos, credentials, machines, member, service
from tests.talos_pki import TestAuthority


@pytest.fixture
async def fleet(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[FakeTalos]]:
    async with machines("127.0.0.1", "127.0.0.2") as made:
        monkeypatch.setattr(talos, "PORT", made[0].port)
        members = [member(1, "cp-1", "127.0.0.1"), member(2, "w-1", "127.0.0.2")]
        for each in made:
            each.members = members
        yield made


def target(fleet: list[FakeTalos], **more: Any) -> dict[str, Any]:
    return {"nodes": NODES, "talos": credentials(fleet[0].authority), **more}


def kubelets(fleet: list[FakeTalos], **more: Any) -> dict[str, Any]:
    wanted = {"talos_version": "1.13.9", "kubernetes_version": "1.36.4", "endpoint": "10.0.0.10"}
    return target(fleet, **{**wanted, **more})


# G1, G2


async def test_maintenance_and_configured_machines_both_answer(fleet: list[FakeTalos]) -> None:
    await fleet[1].start(talos.PORT, maintenance=True)
    told = await evidence("talos-api", target(fleet))
    assert told == ("cp-1: configured, Talos v1.13.9", "w-1: in maintenance mode")


async def test_a_machine_in_maintenance_mode_stays_fine_in_the_last_look(fleet: list[FakeTalos]) -> None:
    await fleet[0].start(talos.PORT, maintenance=True)
    port = talos.PORT
    await fleet[1].stop()
    waiting = asyncio.ensure_future(run("talos-api", target(fleet), PATIENCE, untold))
    await asyncio.sleep(0.3)
    await fleet[1].start(port)
    assert (await waiting).healthy


async def test_a_machine_that_is_off_is_named_with_its_host(fleet: list[FakeTalos]) -> None:
    await fleet[1].stop()
    (found,) = await findings("talos-api", target(fleet))
    assert found.subject == "w-1"
    assert "refused" in found.observed.lower()
    assert "ssh root@boreas qm status 1121" in found.look


async def test_a_machine_of_another_cluster_fails_at_once(fleet: list[FakeTalos]) -> None:
    await fleet[1].start(talos.PORT, authority=TestAuthority("other"))
    (found,) = await fatal("talos-api", target(fleet))
    assert found.subject == "w-1"
    assert "another cluster's credentials" in found.observed


async def test_a_machine_without_configuration_is_waited_for(fleet: list[FakeTalos]) -> None:
    await fleet[1].start(talos.PORT, maintenance=True)
    (found,) = await findings("talos-configured", target(fleet))
    assert (found.subject, found.observed) == ("w-1", "in maintenance mode: it carries no machine configuration")
    assert any("reset --insecure" in command for command in found.look)


async def test_configured_machines(fleet: list[FakeTalos]) -> None:
    assert "w-1: configured, Talos v1.13.9" in await evidence("talos-configured", target(fleet))


async def test_ambient_talosconfig_is_never_read(
    fleet: list[FakeTalos], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hostile = tmp_path / "talosconfig"
    hostile.write_text("context: evil\ncontexts: {evil: {endpoints: [127.0.0.9]}}\n")
    monkeypatch.setenv("TALOSCONFIG", str(hostile))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert await evidence("talos-configured", target(fleet))


async def test_a_machine_that_answers_nothing_is_given_up_on_in_time(
    fleet: list[FakeTalos], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(talos, "ATTEMPT", 0.3)
    fleet[1].stuck = True
    (found,) = await findings("talos-configured", target(fleet))
    assert found.subject == "w-1"
    assert "no answer" in found.observed


# G3


async def test_etcd_agrees_twice(fleet: list[FakeTalos]) -> None:
    outcome = await run("etcd", target(fleet), PATIENCE, untold)
    assert outcome.healthy
    assert outcome.waited >= 0.1


async def test_etcd_before_the_bootstrap(fleet: list[FakeTalos]) -> None:
    fleet[0].services["etcd"] = service("etcd", "Preparing", healthy=False)
    del fleet[1].services["etcd"]
    first, second = await findings("etcd", target(fleet))
    assert first.observed == "etcd is Preparing: probe failed"
    assert "not bootstrapped" in first.cause
    assert second.observed == "etcd is not there"


async def test_etcd_that_runs_but_is_not_healthy(fleet: list[FakeTalos]) -> None:
    fleet[0].services["etcd"] = service("etcd", healthy=False)
    (found,) = await findings("etcd", target(fleet))
    assert found.observed == "etcd is Running: probe failed, not healthy"


async def test_an_etcd_member_that_never_joined(fleet: list[FakeTalos]) -> None:
    for each in fleet:
        each.members = [member(1, "cp-1", "127.0.0.1")]
    (found,) = await findings("etcd", target(fleet))
    assert (found.subject, found.observed) == ("w-1", "not a member of etcd, which has 1 of 2")


async def test_a_learner_is_not_a_member_yet(fleet: list[FakeTalos]) -> None:
    fleet[0].members = [member(1, "cp-1", "127.0.0.1"), member(2, "w-1", "127.0.0.2", learner=True)]
    (found,) = await findings("etcd", target(fleet))
    assert (found.subject, found.observed) == ("w-1", "its etcd member is still a learner")


async def test_a_leftover_member_is_named_with_its_id(fleet: list[FakeTalos]) -> None:
    for each in fleet:
        each.members = [*each.members, member(0xABC, "cp-9", "127.0.0.9")]
    (found,) = await findings("etcd", target(fleet))
    assert "cp-9 (0000000000000abc)" in found.observed
    assert any("etcd remove-member 0000000000000abc" in command for command in found.look)


async def test_a_control_plane_that_is_a_member_twice(fleet: list[FakeTalos]) -> None:
    fleet[0].members = [*fleet[0].members, member(3, "w-1", "127.0.0.2")]
    (found,) = await findings("etcd", target(fleet))
    assert found.observed == "etcd has 3 members instead of 2"


async def test_control_planes_that_disagree_on_the_members(fleet: list[FakeTalos]) -> None:
    fleet[1].members = [member(1, "cp-1", "127.0.0.1"), member(7, "w-1", "127.0.0.2")]
    (found,) = await findings("etcd", target(fleet))
    assert "is not that of cp-1" in found.observed


async def test_a_member_that_joins_is_noticed(fleet: list[FakeTalos]) -> None:
    whole = fleet[0].members
    fleet[0].members = whole[:1]

    def join() -> None:
        fleet[0].members = whole

    assert (await noticed("etcd", target(fleet), join)).healthy


# G4


async def test_healthy_kubelets(fleet: list[FakeTalos]) -> None:
    told = await evidence("kubelets", kubelets(fleet))
    assert told[1] == "w-1: kubelet v1.36.4 healthy, Talos v1.13.9"


async def test_a_worker_waiting_for_volumes_is_recognised(fleet: list[FakeTalos]) -> None:
    fleet[1].services["kubelet"] = service(
        "kubelet", "Waiting", healthy=False, event="Waiting for volumes to be mounted"
    )
    (found,) = await findings("kubelets", kubelets(fleet))
    assert found.subject == "w-1"
    assert "kubelet is Waiting, not healthy: Waiting for volumes" in found.observed
    assert "volume mount race" in found.cause
    assert found.ladder


@pytest.mark.parametrize(
    ("state", "cause"), [("Failed", "can go on saying Ready"), ("Starting", "it starts")], ids=["dead", "starting"]
)
async def test_a_kubelet_that_does_not_run(fleet: list[FakeTalos], state: str, cause: str) -> None:
    fleet[0].services["kubelet"] = service("kubelet", state, healthy=False)
    (found,) = await findings("kubelets", kubelets(fleet))
    assert cause in found.cause


async def test_a_missing_kubelet_service(fleet: list[FakeTalos]) -> None:
    del fleet[0].services["kubelet"]
    assert "kubelet is not there" in observed(await findings("kubelets", kubelets(fleet)))


async def test_a_machine_that_still_boots(fleet: list[FakeTalos]) -> None:
    unmet = {"unmetConditions": [{"name": "services", "reason": "kubelet is not healthy"}]}
    fleet[0].set(MACHINE_STATUS, "machine", {"stage": "booting", "status": unmet})
    (found,) = await findings("kubelets", kubelets(fleet))
    assert found.observed == "machine stage is booting (services: kubelet is not healthy)"


async def test_a_machine_without_a_status_yet(fleet: list[FakeTalos]) -> None:
    del fleet[0].resources[(MACHINE_STATUS.type, "machine")]
    assert "machine stage is unknown" in observed(await findings("kubelets", kubelets(fleet)))


async def test_an_error_that_is_not_absence_is_told(fleet: list[FakeTalos]) -> None:
    del fleet[0].resources[(MACHINE_STATUS.type, "machine")]
    fleet[0].missing = Status.UNAVAILABLE
    (found,) = await findings("kubelets", kubelets(fleet))
    assert "no such resource" in found.observed
    assert "not this question" in found.cause


async def test_time_that_is_not_in_sync(fleet: list[FakeTalos]) -> None:
    fleet[0].set(TIME_STATUS, "node", {"synced": False})
    assert "time is not in sync" in observed(await findings("kubelets", kubelets(fleet)))


async def test_time_sync_may_be_off_on_purpose(fleet: list[FakeTalos]) -> None:
    fleet[0].set(TIME_STATUS, "node", {"synced": False, "syncDisabled": True})
    assert await evidence("kubelets", kubelets(fleet))


async def test_talos_diagnostics_are_repeated(fleet: list[FakeTalos]) -> None:
    spec = {"message": "kubelet server certificate rotation", "details": ["csr pending"]}
    fleet[1].set(DIAGNOSTIC, "kubelet-csr", spec)
    (found,) = await findings("kubelets", kubelets(fleet))
    assert found.observed == "Talos diagnostic kubelet-csr: kubelet server certificate rotation (csr pending)"


async def test_a_second_address_from_dhcp(fleet: list[FakeTalos]) -> None:
    lease = {"address": "127.0.0.200/24", "linkName": "ens18", "family": "inet4"}
    fleet[1].set(ADDRESS_STATUS, "ens18/lease", lease)
    (found,) = await findings("kubelets", kubelets(fleet))
    assert found.observed == "2 IPv4 addresses on ens18: 127.0.0.2/24, 127.0.0.200/24"


async def test_the_endpoints_own_address_is_no_second_address(fleet: list[FakeTalos]) -> None:
    shared = {"address": "10.0.0.10/24", "linkName": "ens18", "family": "inet4"}
    fleet[0].set(ADDRESS_STATUS, "ens18/vip", shared)
    assert await evidence("kubelets", kubelets(fleet, endpoint="https://10.0.0.10:6443"))


async def test_versions_behind_the_stack_file_print_the_upgrade(fleet: list[FakeTalos]) -> None:
    fleet[0].version = "v1.13.8"
    fleet[1].set(KUBELET_SPEC, "kubelet", {"image": "ghcr.io/siderolabs/kubelet:v1.35.0@sha256:abc"})
    first, second = await fatal("kubelets", kubelets(fleet))
    assert first.observed == "runs Talos v1.13.8, the stack wants v1.13.9"
    assert any("upgrade --image" in command and ":v1.13.9" in command for command in first.look)
    assert second.observed == "runs kubelet v1.35.0, the stack wants v1.36.4"
    assert "talosctl -n 127.0.0.2 -e 127.0.0.2 upgrade-k8s --to 1.36.4" in second.look


async def test_a_machine_that_lost_its_configuration_is_not_taken_for_a_foreign_one(fleet: list[FakeTalos]) -> None:
    await fleet[1].start(talos.PORT, maintenance=True)
    (found,) = await findings("kubelets", kubelets(fleet))
    assert "in maintenance mode" in found.observed


async def test_a_foreign_machine_fails_the_kubelet_gate(fleet: list[FakeTalos]) -> None:
    await fleet[1].start(talos.PORT, authority=TestAuthority("other"))
    (found,) = await fatal("kubelets", kubelets(fleet))
    assert "another cluster's credentials" in found.observed


async def test_a_kubelet_that_recovers_is_noticed_through_the_watch(
    fleet: list[FakeTalos], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without its watch the gate would look again after a minute only.
    monkeypatch.setattr("gates.wait.FIRST_PAUSE", 60.0)
    monkeypatch.setattr("gates.kubelets.KubeletsSession.longest_pause", 60.0)
    fleet[1].services["kubelet"] = service("kubelet", "Waiting", healthy=False)
    waiting = asyncio.ensure_future(run("kubelets", kubelets(fleet), PATIENCE, untold))
    await until(lambda: fleet[1].watches == 5)
    fleet[1].services["kubelet"] = service("kubelet")
    fleet[1].change()
    assert (await waiting).healthy


async def test_a_watch_that_breaks_is_begun_anew(fleet: list[FakeTalos], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(talos, "FIRST_RETRY", 0.01)
    fleet[1].services["kubelet"] = service("kubelet", "Waiting", healthy=False)
    waiting = asyncio.ensure_future(run("kubelets", kubelets(fleet), PATIENCE, untold))
    await until(lambda: fleet[1].watches == 5)
    await fleet[1].start(talos.PORT)
    await until(lambda: fleet[1].watches == 10)
    fleet[1].services["kubelet"] = service("kubelet")
    fleet[1].change()
    assert (await waiting).healthy


async def test_a_certificate_for_another_address_is_waited_for(fleet: list[FakeTalos]) -> None:
    stray = FakeTalos(address="127.0.0.3", authority=fleet[0].authority)
    await stray.start(talos.PORT, name="127.0.0.4")
    nodes = [{**CP, "address": "127.0.0.3"}]
    (found,) = await findings("kubelets", {**kubelets(fleet), "nodes": nodes})
    assert "mismatch" in found.observed
    await stray.stop()


async def test_only_unwell_machines_are_asked_again_until_the_last_look(fleet: list[FakeTalos]) -> None:
    session = EtcdSession(target(fleet))
    fleet[1].services["etcd"] = service("etcd", "Preparing", healthy=False)
    await session.look()
    asked = session.machines[0].asked
    await session.look()
    assert session.machines[0].asked == asked
    fleet[1].services["etcd"] = service("etcd")
    await session.look()
    assert session.machines[0].asked > asked
    await session.close()


async def test_a_failed_talos_gate_gathers_the_last_words_of_unwell_machines(fleet: list[FakeTalos]) -> None:
    fleet[1].services["kubelet"] = service("kubelet", "Failed", healthy=False)
    outcome = await run("kubelets", kubelets(fleet), 0.3, untold)
    assert outcome.extra == {
        "Talos on w-1": {
            "services": {"etcd": "Running, healthy: True", "kubelet": "Failed, healthy: False"},
            "kubelet log": ["first line", "last line"],
            "kernel log": ["first line", "last line"],
        }
    }


async def test_a_machine_that_is_gone_leaves_no_words(fleet: list[FakeTalos]) -> None:
    await fleet[1].stop()
    outcome = await run("kubelets", kubelets(fleet), 0.3, untold)
    assert outcome.extra == {"Talos on w-1": {}}


async def test_between_two_modes_nothing_is_taken_for_foreign(fleet: list[FakeTalos]) -> None:
    machine = KubeletsSession(kubelets(fleet)).machines[1]
    await fleet[1].stop()
    seen = await talos.untold(machine, TalosError(Reason.UNTRUSTED, "unable to get local issuer certificate"))
    assert not seen.fatal
    assert "unable to get local issuer" in seen.findings[0].observed
