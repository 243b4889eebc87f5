"""The doctor: which gates it asks, of whom, and what it prints."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from gates.target import NodeRef
from gates.verdict import Failed, Finding, Healthy
from gates.wait import Outcome
from operations import doctor
from operations.doctor import Tokens
from operations.stack import Stack, StackError

TOKEN = "groundwork@pve!provision=11111111-2222-3333-4444-555555555555"
TALOSCONFIG = yaml.safe_dump({"context": "infra", "contexts": {"infra": {"ca": "Y2E=", "crt": "Y3J0", "key": "a2V5"}}})
OUTPUTS = {"kubeconfig": "apiVersion: v1", "talosconfig": TALOSCONFIG, "sealing_fingerprint": "ab"}
NODE = NodeRef(name="infra-w-1", address="10.25.11.21", vmid=1121, host="atlas", role="worker")


def asked() -> list[Any]:
    cluster = Stack("infra").cluster()
    return doctor.everything(cluster, doctor.access_of(OUTPUTS), "ab", Tokens(proxmox=TOKEN, git="git"))


def test_it_asks_every_gate_a_finished_cluster_has() -> None:
    always = "GP G2 G3 G4 G5 G6 G7 G8b G8 G9 G10 G11 G13a G12c G12 G12b G13 G14 G15 G16 G17 G18"
    assert " ".join(question.gate for question in asked()) == always


def test_it_asks_with_the_stacks_own_credentials() -> None:
    by_probe = {question.probe: question.target for question in asked()}
    assert by_probe["etcd"]["talos"] == {"ca": "Y2E=", "certificate": "Y3J0", "key": "a2V5"}
    assert by_probe["vip"]["kubeconfig"] == "apiVersion: v1"
    assert by_probe["proxmox-preflight"]["token"] == TOKEN
    assert by_probe["sealed-files"]["token"] == "git"


def test_a_stack_without_a_cluster_says_so() -> None:
    with pytest.raises(StackError, match="pulumi up"):
        doctor.access_of({})


def test_tokens_do_not_print_themselves() -> None:
    assert TOKEN not in repr(Tokens(proxmox=TOKEN, git="secret-git-token"))


@pytest.fixture
def cluster_of(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs the doctor on one shut gate, or on none."""

    def arrange(shut: str | None) -> None:
        async def run(probe: str, target: Any, deadline: float, _progress: Any) -> Outcome:
            if probe != shut:
                return Outcome(verdict=Healthy(evidence=("fine",)), waited=0.1, deadline=deadline)
            found = Finding(node=NODE, observed=f"kubelet [dead] {TOKEN}", cause="volumes", ladder=True)
            return Outcome(verdict=Failed(findings=(found,)), waited=1.0, deadline=deadline)

        monkeypatch.setattr(doctor, "run", run)
        monkeypatch.setattr(Stack, "outputs", lambda _self: OUTPUTS)
        monkeypatch.setattr(Stack, "secret", lambda _self, _key: TOKEN)
        monkeypatch.setenv("COLUMNS", "200")

    return arrange


def test_a_healthy_cluster_is_a_table_and_success(cluster_of: Any, capsys: pytest.CaptureFixture[str]) -> None:
    cluster_of(None)
    assert doctor.main(["--stack", "infra"]) == 0
    assert "not healthy" not in capsys.readouterr().out


def test_a_shut_gate_is_told_in_full_and_without_secrets(cluster_of: Any, capsys: pytest.CaptureFixture[str]) -> None:
    cluster_of("proxmox-preflight")
    assert doctor.main(["--stack", "infra"]) == 1
    told = capsys.readouterr().out
    table, _, diagnosis = told.partition("waiting longer cannot help")
    assert "kubelet [dead]" in table
    assert "kubelet [dead]" in diagnosis
    assert "qm reset 1121" in told
    assert TOKEN.partition("=")[2] not in told


def test_an_unknown_stack_is_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor.main(["--stack", "nowhere"]) == 2
    assert "Pulumi.nowhere.yaml" in capsys.readouterr().err
