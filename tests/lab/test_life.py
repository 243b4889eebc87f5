"""The life of a small cluster on the real engine: born alone, it grows, is changed, destroyed and born again."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab import environment
from lab.client_files import in_clear
from lab.control import ControlClient
from lab.launch import PROJECT
from lab.request_log import RequestLog
from lab.sandbox import stop
from tests.lab.conftest import Stage, Start, stack_file

pytestmark = pytest.mark.lab

STACK = "infra"
PATIENCE = 420
UP = ("up", "--yes", "--skip-preview")
WORKER = "infra-w-2"
RECORDS = {"pulumi-python:dynamic/groundwork:Gate", "pulumi-python:dynamic/groundwork:Rollout"}
"""What a changed stack file renews by itself: proofs, and notes of what was rolled out."""
SECRET_FIELDS = {"key", "token", "secret", "bootstrapToken", "secretboxEncryptionSecret", "clientKey"}
PEM_LINE = 40


@dataclass(frozen=True, kw_only=True)
class Done:
    """One call of the engine: how it ended, what it said, what it did or would do."""

    code: int
    text: str
    steps: Sequence[tuple[str, str]]
    """Operation and URN."""
    warnings: Sequence[str]

    def names(self, operation: str) -> set[str]:
        return {urn.rpartition("::")[2] for op, urn in self.steps if op == operation}

    def types(self, operation: str) -> set[str]:
        return {urn.split("::")[2].rpartition("$")[2] for op, urn in self.steps if op == operation}

    @property
    def operations(self) -> set[str]:
        return {op for op, _ in self.steps}


def pulumi(stage: Stage, step: str, *arguments: str) -> Done:
    """The engine inside, for a bounded time: after that the whole lab ends, and the engine with it."""
    guard = threading.Timer(PATIENCE, stop, [stage.run])
    guard.start()
    try:
        done = stage.engine.operate(step, *arguments, "--suppress-outputs")
    finally:
        guard.cancel()
    lines = (stage.run.events / f"{STACK}-{step}.jsonl").read_text().splitlines()
    told = [json.loads(line) for line in lines]
    planned = [event["resourcePreEvent"]["metadata"] for event in told if "resourcePreEvent" in event]
    said = [event["diagnosticEvent"] for event in told if "diagnosticEvent" in event]
    return Done(
        code=done.code,
        text=done.tail(),
        steps=[(metadata["op"], metadata["urn"]) for metadata in planned],
        warnings=[entry["message"] for entry in said if entry["severity"] == "warning"],
    )


def green(stage: Stage, step: str, *arguments: str) -> Done:
    done = pulumi(stage, step, *arguments)
    assert done.code == 0, done.text
    return done


def alone(cluster: dict[str, Any]) -> None:
    cluster["nodes"] = {"infra-cp-1": cluster["nodes"]["infra-cp-1"]}
    cluster["talos"]["allow_scheduling_on_control_planes"] = True


def edit(stage: Stage, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the stack file of the lab's copy of the project, as a person would."""
    path = stage.run.project / f"Pulumi.{STACK}.yaml"
    document = yaml.safe_load(path.read_text())
    change(document["config"]["groundwork:cluster"])
    path.write_text(yaml.safe_dump(document, sort_keys=False))


def committed(node: str) -> dict[str, Any]:
    document = yaml.safe_load((PROJECT / "Pulumi.infra.yaml").read_text())
    found: dict[str, Any] = document["config"]["groundwork:cluster"]["nodes"][node]
    return found


def evidence(stage: Stage, gate: str) -> str:
    found = [r["outputs"]["evidence"] for r in stage.resources() if r.get("outputs", {}).get("gate") == gate]
    return "\n".join(line for lines in found for line in lines)


def machines(stage: Stage) -> list[str]:
    """Names of the VMs the hypervisor knows."""
    return [row[1] for row in ControlClient(stage.run).status()["machines"]]


@dataclass(frozen=True, kw_only=True)
class Born:
    stage: Stage
    first_preview: Sequence[Mapping[str, Any]]
    """What was asked of the emulators during it."""


@pytest.fixture(scope="module")
def born(start: Start, tmp_path_factory: pytest.TempPathFactory) -> Born:
    """A cluster of one node; the tests below are its life, in order."""
    path = stack_file(tmp_path_factory.mktemp("life"), STACK, alone)
    stage = start("life", ["up", "--stack-file", str(path)], STACK)
    green(stage, "first-preview", "preview")
    asked = RequestLog(stage.run.requests).entries()
    green(stage, "birth", *UP)
    return Born(stage=stage, first_preview=asked)


def test_one_node_is_healthy_with_one_operator_of_two(born: Born) -> None:
    assert machines(born.stage) == ["infra-cp-1"]
    assert "cilium-operator: 1 of 2 available (normal on one node" in evidence(born.stage, "G9")
    assert evidence(born.stage, "G18")


def test_a_preview_writes_nothing(born: Born) -> None:
    assert not [entry for entry in born.first_preview if entry["write"]]


def test_a_living_cluster_has_not_drifted_and_looking_changes_nothing(born: Born) -> None:
    """Looking anew in a preview; `pulumi refresh` alone shows disks[].speed, which the provider reads as unset."""
    stage = born.stage
    asked, audited = len(stage.requests), len(audit(stage))
    green(stage, "no-drift", "preview", "--refresh", "--expect-no-changes")
    entries = stage.requests[asked:]
    assert {"proxmox"} <= {entry["service"] for entry in entries}
    assert not [entry for entry in entries if entry["write"]]
    assert not [entry for entry in audit(stage)[audited:] if changes(entry)]


def audit(stage: Stage) -> list[dict[str, Any]]:
    """What the API server was asked by the holder of the stack's kubeconfig."""
    path = stage.run.runtime / "kubernetes-1/secrets/audit.log"
    entries = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
    return [entry for entry in entries if entry["user"]["username"] == "admin"]


def changes(entry: Mapping[str, Any]) -> bool:
    return entry["verb"] not in ("get", "list", "watch") and "dryRun=All" not in entry["requestURI"]


def test_no_secret_is_in_clear_in_the_state_or_any_log(born: Born) -> None:
    stage = born.stage
    secrets = set(known_secrets(stage))
    assert len(secrets) > 50
    texts = {path: path.read_text(errors="replace") for path in written(stage)}
    texts[Path("exported state")] = json.dumps(stage.engine.export())
    assert any(path.name == "requests.jsonl" for path in texts)
    assert not {(str(path), secret[:4]) for path, text in texts.items() for secret in secrets if secret in text}


def written(stage: Stage) -> Iterator[Path]:
    """Everything the run wrote for people to read; the emulators' own key files are not among it."""
    run = stage.run
    yield from (path for folder in (run.logs, run.events, run.state) for path in folder.rglob("*") if path.is_file())
    yield from run.runtime.rglob("*.log")
    yield from (path for path in (run.project / "gitops").rglob("*") if path.is_file())


def known_secrets(stage: Stage) -> Iterator[str]:
    yield from (token.partition("=")[2] or token for token in environment.read_credentials(stage.run).by_key().values())
    yield (stage.run.root / "passphrase").read_text()
    outputs = {
        r["type"]: in_clear(r.get("outputs", {}))
        for r in stage.engine.export(show_secrets=True)["deployment"]["resources"]
    }
    for value in secret_fields(outputs["talos:machine/secrets:Secrets"]):
        yield from forms(value)
    yield from pem_lines(outputs["tls:index/privateKey:PrivateKey"]["privateKeyPem"])
    (user,) = yaml.safe_load(outputs["talos:cluster/kubeconfig:Kubeconfig"]["kubeconfigRaw"])["users"]
    yield from forms(user["user"]["client-key-data"])


def secret_fields(value: Any) -> Iterator[str]:
    for key, item in value.items() if isinstance(value, dict) else ():
        if isinstance(item, dict):
            yield from secret_fields(item)
        elif key in SECRET_FIELDS:
            yield str(item)


def forms(value: str) -> Iterator[str]:
    """A secret as it stands, and what is inside it when it is an encoded key."""
    yield value
    if len(value) > PEM_LINE:
        yield from pem_lines(base64.b64decode(value).decode(errors="replace"))


def pem_lines(text: str) -> Iterator[str]:
    """Line by line: a log or a JSON text breaks the lines of a key in its own way."""
    yield from (line for line in text.splitlines() if len(line) >= PEM_LINE and "-----" not in line)


@pytest.mark.trial
def test_a_worker_that_is_added_creates_only_its_own_resources(born: Born) -> None:
    stage, worker = born.stage, committed(WORKER)
    assert stage.shell("ip", "address", "add", f"{worker['address']}/32", "dev", "lo").returncode == 0
    edit(stage, lambda cluster: cluster["nodes"].update({WORKER: worker}))
    grown = green(stage, "growth", *UP)
    assert grown.names("create") == {WORKER, f"{WORKER}-configuration", f"infra-image-{worker['host']}"}
    assert grown.types("update") <= RECORDS
    assert grown.operations == {"same", "create", "update"}
    assert machines(stage) == ["infra-cp-1", WORKER]
    assert "cilium-operator: 2 of 2 available" in evidence(stage, "G9")


@pytest.mark.trial
def test_a_changed_configuration_waits_for_its_node_to_be_named(born: Born) -> None:
    stage = born.stage
    patch = {"machine": {"sysctls": {"net.core.somaxconn": "4096"}}}
    edit(stage, lambda cluster: cluster["talos"].update(patches={"all": [patch]}))
    planned = green(stage, "changed", "preview")
    (warning,) = [text for text in planned.warnings if "left alone" in text]
    assert f"infra-cp-1, {WORKER} differs" in warning
    assert planned.types("update") <= RECORDS
    assert planned.operations == {"same", "update"}

    edit(stage, lambda cluster: cluster.update(rollout={"nodes": [WORKER]}))
    applied = len(applications(stage))
    rolled = green(stage, "roll-out", *UP)
    assert rolled.names("update") - {
        name for name in rolled.names("update") if not name.endswith("-configuration")
    } == {f"{WORKER}-configuration"}
    assert rolled.operations == {"same", "update"}
    assert {entry["machine"] for entry in applications(stage)[applied:]} == {WORKER}


def applications(stage: Stage) -> list[dict[str, Any]]:
    return [entry for entry in stage.requests if entry["path"].endswith("ApplyConfiguration")]


@pytest.mark.trial
def test_a_new_kubeconfig_replaces_nothing_but_itself(born: Born) -> None:
    stage = born.stage
    (urn,) = [r["urn"] for r in stage.resources() if r["type"] == "talos:cluster/kubeconfig:Kubeconfig"]
    planned = green(stage, "other-kubeconfig", "preview", "--replace", urn)
    assert replaced(planned) == {urn}
    done = green(stage, "new-kubeconfig", *UP, "--replace", urn)
    assert replaced(done) == {urn}
    assert "kubernetes" in done.names("update"), "the provider did get another kubeconfig"


def replaced(done: Done) -> set[str]:
    return {urn for op, urn in done.steps if "replace" in op or "delete" in op}


@pytest.mark.trial
def test_a_destroyed_cluster_keeps_its_identity_and_comes_back_with_it(born: Born) -> None:
    stage = born.stage
    edit(stage, lambda cluster: cluster.update(protect_nodes=False))
    green(stage, "unprotected", *UP)
    before, authority, sealed = identity(stage), cluster_authority(stage), sealed_files(stage)
    assert len(before) == 3
    green(stage, "destruction", "destroy", "--yes", "--skip-preview", "--exclude-protected")
    assert machines(stage) == []
    assert identity(stage) == before
    green(stage, "rebirth", *UP)
    assert machines(stage) == ["infra-cp-1", WORKER]
    assert identity(stage) == before
    assert cluster_authority(stage) == authority
    assert sealed_files(stage) == sealed
    assert set(synced(stage)) == {"True"}


def identity(stage: Stage) -> dict[str, str]:
    """Talos's secrets, the sealing key and its certificate, as the state keeps them."""
    resources = stage.engine.export(show_secrets=True)["deployment"]["resources"]
    return {r["urn"]: json.dumps(in_clear(r["outputs"]), sort_keys=True) for r in resources if r.get("protect")}


def cluster_authority(stage: Stage) -> str:
    return kubectl(
        stage, "config", "view", "--raw", "--output", "jsonpath={.clusters[*].cluster.certificate-authority-data}"
    )


def sealed_files(stage: Stage) -> dict[str, str]:
    directory = stage.run.project / "gitops/clusters/infra/sealed"
    files = {path.name: path.read_text() for path in directory.iterdir()}
    assert files
    return files


def synced(stage: Stage) -> list[str]:
    listed = kubectl(
        stage, "get", "sealedsecrets", "--all-namespaces", "--output",
        "jsonpath={.items[*].status.conditions[?(@.type=='Synced')].status}",
    )  # fmt: skip
    return listed.split()


def kubectl(stage: Stage, *arguments: str) -> str:
    done = stage.shell("kubectl", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout
