import asyncio
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from lab import control
from lab.control import ControlClient
from lab.fault_plan import FaultPlan, FaultRequest, UnknownFaultError, gate_names
from lab.faults import Faults
from lab.run_directory import LabError, RunDirectory
from lab.sandbox import world_pid

KNOWN = {"vm-does-not-boot", "vip-dead"}


def passed(gate: str, probe: str) -> dict[str, Any]:
    outputs = {"gate": gate, "probe": probe, "finished": "2026-01-01T00:00:00Z"}
    return {"resOutputsEvent": {"metadata": {"new": {"outputs": outputs}}}}


@pytest.fixture
def faults() -> Faults:
    return Faults()


@pytest.fixture
def plan(faults: Faults) -> FaultPlan:
    return FaultPlan(faults, KNOWN)


@pytest.fixture
async def run(tmp_path: Path, plan: FaultPlan) -> AsyncIterator[RunDirectory]:
    deep = tmp_path / ("d" * 100)
    run = RunDirectory.of(deep, "try")
    os.close(run.claim())
    serving = asyncio.create_task(control.serve(control.application(plan, lambda: {"machines": []}), run))
    while not run.control.exists():  # noqa: ASYNC110 - the file system has no event
        await asyncio.sleep(0.01)
    yield run
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)


async def test_the_socket_answers_however_deep_the_directory(run: RunDirectory) -> None:
    assert len(str(run.control)) > 107
    assert await asyncio.to_thread(ControlClient(run).status) == {"machines": []}


async def test_the_kernel_names_the_process_behind_the_socket(run: RunDirectory) -> None:
    assert await asyncio.to_thread(world_pid, run) == os.getpid()


async def test_faults_come_and_go_over_the_socket(run: RunDirectory, faults: Faults) -> None:
    client = ControlClient(run)
    await asyncio.to_thread(client.add_fault, FaultRequest(name="vip-dead", node="n1", options={"a": "b"}))
    struck = faults.active("vip-dead", "n1")
    assert struck
    assert struck.options == {"a": "b"}
    assert [f["state"] for f in await asyncio.to_thread(client.faults)] == ["striking"]
    assert await asyncio.to_thread(client.remove_fault, "vip-dead", None) == 1
    assert not faults.active("vip-dead", "n1")


async def test_an_unknown_fault_is_refused_with_the_nearest_name(run: RunDirectory) -> None:
    with pytest.raises(LabError, match="did you mean vip-dead"):
        await asyncio.to_thread(ControlClient(run).add_fault, FaultRequest(name="vip-ded"))


def test_no_lab_no_answer(tmp_path: Path) -> None:
    run = RunDirectory.of(tmp_path, "none")
    with pytest.raises(LabError, match="not running"):
        world_pid(run)


def test_a_fault_waits_for_its_stage(plan: FaultPlan, faults: Faults) -> None:
    plan.add(FaultRequest(name="vip-dead", after="G5"))
    assert not faults.active("vip-dead")
    plan.pass_stage(["G4", "kubelets"])
    assert not faults.active("vip-dead")
    plan.pass_stage(["G5", "kube-api"])
    assert faults.active("vip-dead")


def test_a_stage_may_be_named_by_its_probe_and_be_over_already(plan: FaultPlan, faults: Faults) -> None:
    plan.pass_stage(["G5", "kube-api"])
    plan.add(FaultRequest(name="vip-dead", after="kube-api"))
    assert faults.active("vip-dead")


def test_a_waiting_fault_can_be_taken_back(plan: FaultPlan) -> None:
    plan.add(FaultRequest(name="vip-dead", after="G5"))
    assert plan.remove("vip-dead") == 1
    assert plan.listing() == []


def test_an_unknown_fault_is_refused(plan: FaultPlan) -> None:
    with pytest.raises(UnknownFaultError, match="catalogue"):
        plan.add(FaultRequest(name="zzz"))


def test_only_a_gate_that_has_finished_has_passed() -> None:
    assert gate_names(passed("G5", "kube-api")) == ["G5", "kube-api"]
    planned = {"resOutputsEvent": {"metadata": {"new": {"outputs": {"gate": "G5"}}}}}
    assert gate_names(planned) == []
    assert gate_names({"diagnosticEvent": {}}) == []


async def test_stages_are_read_from_the_engines_event_log(tmp_path: Path, plan: FaultPlan, faults: Faults) -> None:
    plan.add(FaultRequest(name="vip-dead", after="G5"))
    watching = asyncio.create_task(plan.watch(tmp_path))
    line = json.dumps(passed("G5", "kube-api")).encode()
    log = tmp_path / "up.jsonl"
    log.write_bytes(b'{"sequence": 1}\n' + line)
    await asyncio.sleep(0.25)
    assert not faults.active("vip-dead"), "half a line is not read"
    log.write_bytes(b'{"sequence": 1}\n' + line + b"\n")
    async with asyncio.timeout(5):
        while not faults.active("vip-dead"):  # noqa: ASYNC110 - nobody announces it to a test
            await asyncio.sleep(0.01)
    watching.cancel()


def test_requests_survive_the_wire() -> None:
    request = FaultRequest(name="vip-dead", node="n", seconds=3.0, after="G5", options={"k": "v"})
    assert FaultRequest.parse(json.loads(json.dumps(request.document()))) == request
