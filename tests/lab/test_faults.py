"""One fault per gate on the real engine: caught where it happens, waited out when short, and survived."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from lab import fault_runs
from lab.fault_result import Result
from lab.fault_table import GROWING, LIVING_TRIALS, Trial
from lab.launch import PROJECT
from lab.narrator import Narrator
from lab.run_directory import RunDirectory
from tests.lab.conftest import discard

pytestmark = [pytest.mark.lab, pytest.mark.trial]

ONE_PER_GATE = (
    "token-expired",
    "wrong-vlan",
    "apply-lost",
    "worker-never-registers",
    "kubelet-waiting-for-volumes-true",
    "api-one-control-plane-only",
    "vip-dead",
    "cilium-agent-crashloop",
    "node-cordoned",
    "git-bad-credentials",
    "csi-node-plugin-missing",
)


def _chosen(trials: tuple[Trial, ...]) -> list[Trial]:
    return [trial for trial in trials if trial.name in ONE_PER_GATE]


@pytest.fixture(scope="module")
def results() -> Iterator[dict[str, Result]]:
    name = f"test-faults-{os.getpid()}"
    try:
        found = fault_runs.perform(name, _chosen(GROWING), _chosen(LIVING_TRIALS), Narrator())
        yield {result.trial: result for result in found}
    finally:
        discard(RunDirectory.of(PROJECT, name))


@pytest.mark.parametrize("trial", ONE_PER_GATE)
def test_caught_at_its_gate_and_survived(results: dict[str, Result], trial: str) -> None:
    result = results[trial]
    assert result.complaints == []
    assert result.caught_at == result.gate
    assert result.converged


def test_a_fault_shorter_than_the_deadline_does_not_fail_the_run(results: dict[str, Result]) -> None:
    waited = {name: result.transient_waited for name, result in results.items() if result.transient_waited is not None}
    assert len(waited) >= 5
    assert min(waited.values()) >= 1
