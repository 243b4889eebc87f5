"""How the results of fault runs are judged and written down."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from lab import fault_document, fault_evidence, fault_result
from lab.fault_catalogue import CATALOGUE
from lab.fault_evidence import Stop
from lab.fault_result import Result
from lab.fault_table import APART, GROWING, LIVING_TRIALS, Trial

GATE = "urn:pulumi:infra::groundwork::x$pulumi-python:dynamic/groundwork:Gate::infra-kubelets"
MESSAGE = (
    "G4 kubelet: not healthy\n\nn1 (10.0.0.1, VM 7 on h)\n  observed: dead\n  look:     here\n\ndiagnostics: d.txt\n"
)
NODE = {"address": "10.0.0.1", "vmid": 7}


def _failed(urn: str, message: str) -> list[dict[str, object]]:
    return [
        {"diagnosticEvent": {"severity": "error", "urn": urn, "message": message}},
        {"resOpFailedEvent": {"metadata": {"urn": urn, "op": "create"}}},
    ]


def test_every_trial_is_in_the_catalogue_and_has_a_name_of_its_own() -> None:
    trials = [*GROWING, *LIVING_TRIALS, *APART]
    assert {trial.fault for trial in trials} <= CATALOGUE.keys()
    assert len({trial.name for trial in trials}) == len(trials)


def test_adjacent_trials_do_not_end_each_other() -> None:
    for trials in (GROWING, LIVING_TRIALS):
        pairs = [(trial.fault, trial.node) for trial in trials]
        assert all(before != after for before, after in pairwise(pairs))


def test_a_failed_gate_is_known_by_its_message_and_others_by_the_engine() -> None:
    made = {"resOutputsEvent": {"metadata": {"urn": "a", "op": "create", "new": {"outputs": {"waited": 2.5}}}}}
    deed = fault_evidence.read([made, *_failed(GATE, MESSAGE), *_failed("urn::vm", "error: no space")])
    assert [stop.gate for stop in deed.stops] == ["G4", "engine"]
    assert deed.touched == ["a"]
    assert deed.passed == {"a": 2.5}


def test_what_lies_behind_a_gate() -> None:
    def resource(urn: str, *needs: str, provider: str = "") -> dict[str, object]:
        return {"urn": urn, "custom": True, "dependencies": list(needs), "provider": provider}

    listed = [resource("g"), resource("p", "g"), resource("x", provider="p::id"), resource("beside")]
    assert fault_evidence.behind("g", {"deployment": {"resources": listed}}) == {"p", "x"}


@pytest.mark.parametrize(
    ("fault", "about", "lacking"),
    [
        ("wrong-vlan", "n1", []),
        ("wrong-vlan", "n2", ["the message does not say n2"]),
        ("kubelet-dead", "n1", ["the message has no recovery ladder for the node"]),
    ],
)
def test_what_a_message_owes(tmp_path: Path, fault: str, about: str, lacking: list[str]) -> None:
    (tmp_path / "d.txt").touch(mode=0o600)
    trial = Trial(fault=fault, about=about)
    assert fault_evidence.omissions(Stop(urn=GATE, message=MESSAGE), NODE, trial, tmp_path) == lacking


def test_a_bundle_others_can_read_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "d.txt").touch()
    (tmp_path / "d.txt").chmod(0o644)
    stop = Stop(urn=GATE, message=MESSAGE)
    assert fault_evidence.omissions(stop, None, Trial(fault="wrong-vlan"), tmp_path) == ["d.txt has mode 0644"]


def test_credentials_and_tracebacks_are_noticed() -> None:
    text = "Traceback (most recent call last):\n  token s3cret-value"
    assert len(fault_evidence.leaks(text, ["s3cret-value"])) == 2
    assert fault_evidence.leaks("all quiet", ["s3cret-value"]) == []


def test_the_document_tells_what_was_not_run(tmp_path: Path) -> None:
    result = Result(
        fault="wrong-vlan", trial="wrong-vlan", gate="G1", node=None, lab="", finished="2026", caught_at="G1",
        message="G1 Talos API | all\nmore", converged=True,
    )  # fmt: skip
    fault_result.write([result], tmp_path)
    lines = fault_document.document(fault_document.newest([tmp_path / fault_result.FILE])).splitlines()
    (row,) = [line for line in lines if line.startswith("| wrong-vlan ")]
    assert "G1 Talos API \\| all" in row
    assert sum("not run" in line for line in lines) == len(CATALOGUE) - 1


def test_a_run_that_was_ended_is_not_called_converged() -> None:
    result = Result(
        fault="vip-dead", trial="vip-dead", gate="G6", node=None, lab="", finished="2026", passed_later=True
    )
    assert not result.good
    assert "| its gate opened, the run was ended |" in fault_document.document([result])
