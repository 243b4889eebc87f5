"""Gates against the emulated machines of the lab: each fault is seen for what it is, and its end is noticed."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gates import talos
from gates.registry import run
from gates.verdict import Failed, Finding, Healthy, Verdict
from tests.gates_runs import PATIENCE, look, untold
from tests.talos_lab import TalosLab, address, talos_lab

NODES = [(1, "cp-1", "controlplane"), (2, "cp-2", "controlplane"), (3, "cp-3", "controlplane"), (101, "w-1", "worker")]


@pytest.fixture
async def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[TalosLab]:
    async with talos_lab(tmp_path) as made:
        monkeypatch.setattr(talos, "PORT", made.port)
        monkeypatch.setattr(talos, "ATTEMPT", 2.0)
        yield made


def target(lab: TalosLab, *, planes_only: bool = False, **more: Any) -> dict[str, Any]:
    chosen = [each for each in NODES if not planes_only or each[2] == "controlplane"]
    nodes = [
        {"name": name, "address": address(number), "vmid": 1000 + number, "host": "atlas", "role": role}
        for number, name, role in chosen
    ]
    found = lab.credentials
    parts = {"ca": found.ca, "certificate": found.certificate, "key": found.key}
    return {
        "nodes": nodes,
        "talos": {key: base64.b64encode(pem.encode()).decode() for key, pem in parts.items()},
        **more,
    }


def kubelets(lab: TalosLab) -> dict[str, Any]:
    return target(lab, talos_version="1.13.9", kubernetes_version="1.36.4", endpoint="127.0.20.99")


async def expected(probe: str, asked: dict[str, Any], node: str, words: str) -> Finding:
    """The finding about a node, however long the fault takes to show."""
    verdict: Verdict | None = None
    async with asyncio.timeout(PATIENCE):
        while True:
            verdict = await look(probe, asked)
            told = () if isinstance(verdict, Healthy) else verdict.findings
            found = [each for each in told if each.subject == node and words in each.observed]
            if found:
                return found[0]
            await asyncio.sleep(0.1)


async def opens(probe: str, asked: dict[str, Any]) -> bool:
    return (await run(probe, asked, PATIENCE, untold)).healthy


async def test_a_whole_cluster_passes_every_gate_of_its_machines(lab: TalosLab) -> None:
    await lab.cluster_of(3, workers=1)
    assert await opens("talos-api", target(lab))
    assert await opens("talos-configured", target(lab))
    assert await opens("etcd", target(lab, planes_only=True))
    assert await opens("kubelets", kubelets(lab))


@pytest.mark.parametrize(
    ("fault", "node", "words"),
    [
        ("kubelet-waiting-for-volumes", "w-1", "volume"),
        ("kubelet-dead", "w-1", "kubelet is Failed"),
        ("node-ready-lies", "w-1", "kubelet is"),
        ("double-address", "w-1", "2 IPv4 addresses"),
        ("diagnostics-warning", "cp-2", "Talos diagnostic"),
    ],
)
async def test_faults_of_a_kubelet(lab: TalosLab, fault: str, node: str, words: str) -> None:
    await lab.cluster_of(3, workers=1)
    lab.fault(fault, node)
    await expected("kubelets", kubelets(lab), node, words)
    lab.faults.remove(fault)
    assert await opens("kubelets", kubelets(lab))


@pytest.mark.parametrize(
    ("fault", "words"), [("etcd-never-joins", "not a member of etcd"), ("etcd-learner-stays", "still a learner")]
)
async def test_faults_of_a_joining_control_plane(lab: TalosLab, fault: str, words: str) -> None:
    lab.fault(fault, "cp-3")
    joining = asyncio.ensure_future(lab.cluster_of(3, workers=1))
    await expected("etcd", target(lab, planes_only=True), "cp-3", words)
    lab.faults.remove(fault)
    await joining
    assert await opens("etcd", target(lab, planes_only=True))


@pytest.mark.parametrize("fault", ["vm-does-not-boot", "wrong-vlan"])
async def test_a_machine_that_does_not_answer(lab: TalosLab, fault: str) -> None:
    lab.fault(fault, "w-1")
    for number, name, _ in NODES:
        await lab.power_on(number, name)
    await expected("talos-api", target(lab), "w-1", "connection refused")
    lab.faults.remove(fault)
    assert await opens("talos-api", target(lab))


async def test_a_machine_of_another_cluster_is_found_at_once(lab: TalosLab) -> None:
    lab.fault("foreign-ca", "w-1")
    for number, name, _ in NODES:
        await lab.power_on(number, name)
    await expected("talos-api", target(lab), "w-1", "another cluster's credentials")
    assert isinstance(await look("talos-api", target(lab)), Failed)


async def test_etcd_without_quorum(lab: TalosLab) -> None:
    await lab.cluster_of(3, workers=1)
    lab.fault("etcd-quorum-lost")
    await expected("etcd", target(lab, planes_only=True), "cp-1", "etcd")
    lab.faults.remove("etcd-quorum-lost")
    assert await opens("etcd", target(lab, planes_only=True))


async def test_a_talos_api_that_comes_and_goes_is_waited_out(lab: TalosLab) -> None:
    await lab.cluster_of(3, workers=1)
    lab.fault("talos-api-flaps", "w-1")
    assert await opens("talos-configured", target(lab))


async def test_a_configuration_that_got_lost(lab: TalosLab) -> None:
    await lab.cluster_of(3)
    lab.fault("apply-lost", "w-1")
    await lab.power_on(101, "w-1")
    await (await lab.maintenance(101)).apply(lab.config(101, "w-1", "worker"))
    await expected("talos-configured", target(lab), "w-1", "in maintenance mode")
