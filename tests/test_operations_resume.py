"""Going on after a killed engine: what is adopted, removed or begun again, and when nothing is touched."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from gates.trouble import TroubleError
from operations import adopt, resume
from operations.adopt import BOOTSTRAP, IMAGE, KUBECONFIG, MACHINE, RELEASE, SECRETS, Witnesses
from operations.etcd import Etcd
from operations.hypervisor import LOOKS, QUIET, Hypervisor
from operations.pending import Action, Finding, Pending, pending_creates, settled, unfinished
from operations.releases import Releases
from operations.stack import Stack, StackError
from talos_api.errors import Reason, TalosError

VM = {"nodeName": "atlas", "vmId": 1111, "name": "infra-cp-1"}
FILE = {"nodeName": "atlas", "datastoreId": "local", "fileName": "talos.qcow2", "contentType": "import"}
OURS = {"vmid": 1111, "name": "infra-cp-1", "tags": "controlplane;groundwork;infra"}
CHART = {"namespace": "kube-system", "name": "cilium"}


async def no_pause(_seconds: float) -> None:
    return None


class Answers:
    """An API that gives, for each path, one prepared answer after another and then the last for ever."""

    def __init__(self, **answers: list[Any]) -> None:
        self.answers = answers

    async def get(self, path: str, /, **_query: Any) -> Any:
        prepared = self.answers[path.rpartition("/")[2]]
        return prepared.pop(0) if len(prepared) > 1 else prepared[0]


def hypervisor(said: list[str] | None = None, **answers: list[Any]) -> Hypervisor:
    told: list[str] = [] if said is None else said
    return Hypervisor(api=Answers(**answers), say=told.append, pause=no_pause)


def busy(kind: str, subject: str = "1111") -> list[dict[str, Any]]:
    return [{"type": kind, "id": subject}]


async def test_a_running_machine_is_adopted() -> None:
    finding = await hypervisor(qemu=[[{**OURS, "status": "running"}]], tasks=[[]]).machine(VM)
    assert (finding.action, finding.identity) == (Action.ADOPT, "1111")


async def test_a_machine_that_is_still_being_made_is_waited_for() -> None:
    said: list[str] = []
    states = [[], [{**OURS, "status": "stopped"}], [{**OURS, "status": "stopped"}], [{**OURS, "status": "running"}]]
    tasks = [busy("qmcreate"), busy("resize"), [], []]
    finding = await hypervisor(said, qemu=states, tasks=tasks).machine(VM)
    assert finding.action is Action.ADOPT
    assert said == ["infra-cp-1: Proxmox is still at work on it (qmcreate); waiting"]


async def test_tasks_of_other_machines_and_tasks_that_ended_are_not_waited_for() -> None:
    others = [{"type": "qmstart", "id": "1121"}, {"type": "qmcreate", "id": "1111", "endtime": 1}]
    finding = await hypervisor(qemu=[[]], tasks=[others]).machine(VM)
    assert finding.action is Action.AGAIN


async def test_a_machine_that_never_started_is_made_anew() -> None:
    finding = await hypervisor(qemu=[[{**OURS, "status": "stopped"}]], tasks=[[]]).machine(VM)
    assert (finding.action, finding.identity) == (Action.ANEW, "1111")


@pytest.mark.parametrize("status", ["running", "stopped"])
@pytest.mark.parametrize("other", [{"name": "database"}, {"tags": "infra"}])
async def test_somebody_elses_machine_is_neither_adopted_nor_removed(status: str, other: dict[str, str]) -> None:
    machine = {**OURS, "status": status, **other}
    with pytest.raises(StackError, match="is not the infra-cp-1 of this stack"):
        await hypervisor(qemu=[[machine]], tasks=[[]]).machine(VM)


async def test_work_without_end_is_left_to_proxmox() -> None:
    with pytest.raises(StackError, match=f"after {LOOKS} s"):
        await hypervisor(qemu=[[]], tasks=[busy("qmcreate")]).machine(VM)


async def test_one_quiet_moment_between_two_tasks_does_not_count() -> None:
    tasks = [busy("qmcreate"), *([[]] * (QUIET - 1)), busy("qmstart"), []]
    states = [*([[{**OURS, "status": "stopped"}]] * (QUIET + 1)), [{**OURS, "status": "running"}]]
    finding = await hypervisor(qemu=states, tasks=tasks).machine(VM)
    assert finding.action is Action.ADOPT


async def test_an_image_is_adopted_once_its_download_ended() -> None:
    there = [{"volid": "local:import/talos.qcow2"}]
    found = await hypervisor(content=[[], there], tasks=[busy("download", "talos.qcow2"), []]).image(FILE)
    assert (found.action, found.identity) == (Action.ADOPT, "local:import/talos.qcow2")
    missing = await hypervisor(content=[[{"volid": "local:import/other.qcow2"}]], tasks=[[]]).image(FILE)
    assert missing.action is Action.AGAIN


def etcd(*rounds: dict[str, str]) -> Etcd:
    """States by address, one round of looks after another; the last stays."""
    left = [dict(each) for each in rounds]
    asked: dict[str, int] = {}

    async def state(address: str) -> str:
        turn = asked[address] = asked.get(address, 0) + 1
        return left[min(turn, len(left)) - 1][address]

    return Etcd(control_planes={"cp-1": "10.0.0.1", "cp-2": "10.0.0.2"}, state=state, pause=no_pause)


@pytest.mark.parametrize("running", ["Running", "Failed", "Starting"])
async def test_etcd_on_any_control_plane_is_adopted(running: str) -> None:
    finding = await etcd({"10.0.0.1": "Preparing", "10.0.0.2": running}).bootstrap()
    assert (finding.action, finding.identity) == (Action.ADOPT, "machine_bootstrap")
    assert f"cp-2 {running}" in finding.observed


async def test_a_bootstrap_that_is_under_way_is_noticed() -> None:
    waiting = {"10.0.0.1": "Preparing", "10.0.0.2": "Preparing"}
    finding = await etcd(waiting, waiting, {**waiting, "10.0.0.1": "Running"}).bootstrap()
    assert finding.action is Action.ADOPT


async def test_etcd_that_waits_everywhere_is_bootstrapped_again() -> None:
    finding = await etcd({"10.0.0.1": "Preparing", "10.0.0.2": ""}).bootstrap()
    assert finding.action is Action.AGAIN


async def test_a_silent_control_plane_stops_everything() -> None:
    async def silent(_address: str) -> str:
        raise TalosError(Reason.UNREACHABLE, "no route")

    with pytest.raises(StackError, match="second bootstrap would be a second etcd"):
        await Etcd(control_planes={"cp-1": "10.0.0.1"}, state=silent, pause=no_pause).bootstrap()


def releases(*statuses: list[str]) -> Releases:
    lists = [{"items": [{"metadata": {"labels": {"status": each}}} for each in one]} for one in statuses]
    return Releases(api=Answers(secrets=lists), pause=no_pause)


@pytest.mark.parametrize(
    ("seen", "action"),
    [
        ([["deployed"]], Action.ADOPT),
        ([[], ["pending-install"], ["deployed"]], Action.ADOPT),
        ([["pending-install"]], Action.ANEW),
        ([["failed"]], Action.ANEW),
        ([[]], Action.AGAIN),
    ],
)
async def test_a_release_by_its_record(seen: list[list[str]], action: Action) -> None:
    finding = await releases(*seen).release(CHART)
    assert finding.action is action
    assert finding.identity == ("" if action is Action.AGAIN else "kube-system/cilium")


def urn(kind: str, name: str) -> str:
    return f"urn:pulumi:infra::groundwork::{kind}::{name}"


def record(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"urn": urn(kind, name), "type": kind, "custom": True, **more}


def exported(*operations: tuple[str, dict[str, Any]], resources: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    pending = [{"type": kind, "resource": resource} for kind, resource in operations]
    return {"version": 3, "deployment": {"resources": list(resources), "pending_operations": pending}}


def test_what_exists_enters_the_state_with_the_inputs_it_was_made_with() -> None:
    inputs = {"__defaults": ["acpi"], "acpi": True, "disks": [{"__defaults": [], "size": 40}]}
    before = exported(("creating", record(MACHINE, "cp-1", inputs=inputs, protect=True)))
    found = {urn(MACHINE, "cp-1"): Finding(action=Action.ADOPT, observed="runs", identity="1111")}
    (held,) = settled(before, found)["deployment"]["resources"]
    assert (held["id"], held["protect"], held["inputs"]) == ("1111", True, inputs)
    assert held["outputs"] == {"acpi": True, "disks": [{"size": 40}], "id": "1111"}


def test_what_is_half_made_can_be_deleted_and_the_rest_is_forgotten() -> None:
    before = exported(
        ("creating", record(MACHINE, "cp-1", inputs={}, protect=True, retainOnDelete=True)),
        ("creating", record("pulumi-python:dynamic/groundwork:Gate", "gate")),
        resources=(record("pulumi:pulumi:Stack", "stack"),),
    )
    found = {
        urn(MACHINE, "cp-1"): Finding(action=Action.ANEW, observed="", identity="1111"),
        urn("pulumi-python:dynamic/groundwork:Gate", "gate"): adopt.HARMLESS,
    }
    after = settled(before, found)["deployment"]
    assert [each["urn"].rpartition("::")[2] for each in after["resources"]] == ["stack", "cp-1"]
    assert (after["resources"][1]["protect"], after["resources"][1]["retainOnDelete"]) == (False, False)
    assert after["pending_operations"] == []


def test_replacements_and_changes_that_were_cut_short_are_looked_at_not_adopted() -> None:
    held = record(MACHINE, "cp-1", id="1111")
    state = exported(("creating", held), ("updating", held), ("deleting", record(MACHINE, "gone")), resources=(held,))
    assert pending_creates(state) == []
    assert unfinished(state) == [held["urn"]]


def witnesses(cluster: Any = None, **outputs: Any) -> Witnesses:
    kinds = {"secrets": SECRETS, "kubeconfig": KUBECONFIG}
    state = {"deployment": {"resources": [{"type": kinds[key], "outputs": value} for key, value in outputs.items()]}}
    return Witnesses(cluster=cluster, state=state, proxmox_token=lambda: "u@pve!t=s", say=lambda _line: None)


async def test_everything_else_is_created_again() -> None:
    gate = Pending(urn=urn("x:y:Gate", "gate"), type="x:y:Gate", inputs={})
    assert (await witnesses().find(gate)).action is Action.AGAIN


async def test_a_witness_that_cannot_be_reached_stops_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(_self: Hypervisor, _inputs: Mapping[str, Any]) -> Finding:
        raise TroubleError("https://pve:8006: connection refused", "it is down")

    monkeypatch.setattr(Hypervisor, "image", refuse)
    cluster = Stack("infra").cluster()
    with pytest.raises(StackError, match=r"whether talos exists cannot be told: https://pve:8006: connection refused"):
        await witnesses(cluster).find(Pending(urn=urn(IMAGE, "talos"), type=IMAGE, inputs=FILE))


async def test_nothing_is_asked_of_a_cluster_that_the_state_does_not_know() -> None:
    cluster = Stack("infra").cluster()
    for kind, inputs in ((BOOTSTRAP, {}), (RELEASE, CHART)):
        with pytest.raises(StackError, match="the state holds no"):
            await witnesses(cluster).find(Pending(urn=urn(kind, "x"), type=kind, inputs=inputs))


class Cli(Stack):
    """A stack whose CLI only takes notes."""

    ran: list[tuple[str, ...]]
    put: list[dict[str, Any]]

    def cluster(self) -> Any:
        return None

    def state(self, *, show_secrets: bool = False) -> dict[str, Any]:
        return self.exported

    def put_state(self, exported: dict[str, Any]) -> None:
        self.put.append(exported)

    def run(self, *arguments: str) -> int:
        self.ran.append(arguments)
        return self.codes.get(arguments[0], 0)

    exported: dict[str, Any]
    codes: dict[str, int]


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Cli]:
    def make(state: dict[str, Any], found: dict[str, Finding] | None = None, **codes: int) -> Cli:
        stack = Cli("infra")
        for name, value in {"ran": [], "put": [], "exported": state, "codes": codes}.items():
            object.__setattr__(stack, name, value)

        async def find(_self: Witnesses, pending: Pending) -> Finding:
            return (found or {})[pending.name]

        monkeypatch.setattr(resume, "Stack", lambda _name: stack)
        monkeypatch.setattr(Witnesses, "find", find)
        return stack

    return make


def test_resume_adopts_removes_and_goes_on(cli: Callable[..., Cli], capsys: pytest.CaptureFixture[str]) -> None:
    state = exported(
        ("creating", record(MACHINE, "cp-1", inputs={})),
        ("creating", record(MACHINE, "w-1", inputs={})),
        ("creating", record(MACHINE, "w-2", inputs={})),
    )
    found = {
        "cp-1": Finding(action=Action.ADOPT, observed="runs", identity="1"),
        "w-1": Finding(action=Action.ANEW, observed="never started", identity="2"),
        "w-2": Finding(action=Action.AGAIN, observed="is not there"),
    }
    stack = cli(state, found)
    assert resume.main([]) == 0
    assert [each[0] for each in stack.ran] == ["cancel", "refresh", "destroy", "up"]
    assert stack.ran[1][-2:] == ("--target", urn(MACHINE, "cp-1"))
    assert stack.ran[2][-2:] == ("--target", urn(MACHINE, "w-1"))
    assert len(stack.put) == 1
    told = capsys.readouterr().err
    assert "cp-1: runs; adopted" in told
    assert "w-2: is not there; to be created again" in told


def test_resume_with_nothing_pending_only_goes_on(cli: Callable[..., Cli]) -> None:
    stack = cli({"deployment": None})
    assert resume.main([]) == 0
    assert [each[0] for each in stack.ran] == ["cancel", "up"]
    assert stack.put == []


def test_a_refresh_that_fails_ends_it(cli: Callable[..., Cli]) -> None:
    found = {"cp-1": Finding(action=Action.ADOPT, observed="runs", identity="1")}
    stack = cli(exported(("creating", record(MACHINE, "cp-1", inputs={}))), found, refresh=255)
    assert resume.main([]) == 255
    assert [each[0] for each in stack.ran] == ["cancel", "refresh"]


def test_doubt_changes_nothing(
    cli: Callable[..., Cli], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def doubt(_self: Witnesses, _pending: Pending) -> Finding:
        raise StackError("cannot be told")

    stack = cli(exported(("creating", record(BOOTSTRAP, "bootstrap", inputs={}))))
    monkeypatch.setattr(Witnesses, "find", doubt)
    assert resume.main([]) == 2
    assert stack.put == []
    assert [each[0] for each in stack.ran] == ["cancel"]
    assert "cannot be told" in capsys.readouterr().err


def pulumi(directory: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """A program called pulumi that does what the script says."""
    program = directory / "pulumi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(directory), prepend=":")


def test_secrets_come_from_where_the_stack_file_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pulumi(tmp_path, monkeypatch, 'case "$3" in *proxmoxToken) echo env:TOKEN;; *) echo clear;; esac')
    assert Stack("infra", environment={"TOKEN": "hidden"}).secret("proxmoxToken") == "hidden"
    assert Stack("infra", environment={}).secret("gitToken") == "clear"
    with pytest.raises(StackError, match=r"export TOKEN=…"):
        Stack("infra", environment={}).secret("proxmoxToken")


def test_the_state_goes_in_by_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pulumi(tmp_path, monkeypatch, f'echo "$@" > {tmp_path}/arguments; cat > {tmp_path}/given')
    Stack("infra").put_state({"deployment": {"secret": "x"}})
    assert json.loads((tmp_path / "given").read_text()) == {"deployment": {"secret": "x"}}
    assert "secret" not in (tmp_path / "arguments").read_text()


def test_a_cli_that_fails_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pulumi(tmp_path, monkeypatch, "echo no stack >&2; exit 1")
    with pytest.raises(StackError, match="no stack"):
        Stack("infra").state()


def test_stacks_that_are_not_there_or_mistaken_are_named(tmp_path: Path) -> None:
    with pytest.raises(StackError, match="describes no cluster"):
        Stack("other", tmp_path).cluster()
    (tmp_path / "Pulumi.other.yaml").write_text("config: {groundwork:cluster: {name: x}}")
    with pytest.raises(StackError, match="pulumi preview -s other"):
        Stack("other", tmp_path).cluster()
