"""What happens to a cluster after it was built: it grows, its engine dies, it is destroyed and built again."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.fault_plan import gate_names
from tests.lab.conftest import Stage, Start, stack_file

pytestmark = pytest.mark.lab

UP = ("up", "--yes", "--skip-preview", "--suppress-outputs")


def single_node(cluster: dict[str, Any]) -> None:
    cluster["nodes"] = {name: node for name, node in cluster["nodes"].items() if name == "infra-cp-1"}


def worker(name: str) -> dict[str, Any]:
    document = yaml.safe_load(Path("Pulumi.infra.yaml").read_text())
    node: dict[str, Any] = document["config"]["groundwork:cluster"]["nodes"][name]
    return node


def steps(stage: Stage, step: str) -> Iterator[tuple[str, str]]:
    """Operation and URN of everything the engine did in a step."""
    for line in (stage.run.events / f"{stage.stack}-{step}.jsonl").read_text().splitlines():
        metadata = json.loads(line).get("resourcePreEvent", {}).get("metadata")
        if metadata:
            yield metadata["op"], metadata["urn"]


def evidence(stage: Stage, gate: str) -> str:
    found = [r["outputs"]["evidence"] for r in stage.resources() if r.get("outputs", {}).get("gate") == gate]
    return " ".join(line for lines in found for line in lines)


@pytest.fixture(scope="module")
def solo(start: Start, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """A cluster of one node, built."""
    path = stack_file(tmp_path_factory.mktemp("solo"), "solo", single_node)
    return start("solo", ["rehearse", "--stack-file", str(path), "--keep"], "solo")


def test_one_node_is_healthy_with_one_operator_of_two(solo: Stage) -> None:
    assert solo.report["success"]
    assert "1 of 2" in evidence(solo, "G9")


def test_a_worker_that_is_added_creates_only_its_own_resources(solo: Stage) -> None:
    address = worker("infra-w-1")["address"]
    assert solo.shell("ip", "address", "add", f"{address}/32", "dev", "lo").returncode == 0
    path = solo.run.project / "Pulumi.solo.yaml"
    document = yaml.safe_load(path.read_text())
    document["config"]["groundwork:cluster"]["nodes"]["infra-w-1"] = worker("infra-w-1")
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    done = solo.engine.operate("grow", *UP)
    assert done.code == 0, done.tail()
    did = list(steps(solo, "grow"))
    assert {urn.rpartition("::")[2] for op, urn in did if op == "create"} == {"infra-w-1", "infra-w-1-configuration"}
    assert not [urn for op, urn in did if "replace" in op or "delete" in op]
    assert "2 of 2" in evidence(solo, "G9")


def test_a_new_kubeconfig_replaces_nothing_else(solo: Stage) -> None:
    (urn,) = [r["urn"] for r in solo.resources() if r["type"] == "talos:cluster/kubeconfig:Kubeconfig"]
    done = solo.engine.operate("kubeconfig", *UP, "--replace", urn)
    assert done.code == 0, done.tail()
    assert {urn for op, urn in steps(solo, "kubeconfig") if "replace" in op} == {urn}


def test_a_destroyed_cluster_keeps_its_identity_and_comes_back_with_it(solo: Stage) -> None:
    before = _identity(solo)
    assert before
    destroyed = solo.engine.operate("destroy", "destroy", "--yes", "--skip-preview", "--exclude-protected")
    assert destroyed.code == 0, destroyed.tail()
    assert _identity(solo) == before
    assert not [r for r in solo.resources() if r["type"] == "proxmoxve:index/vmLegacy:VmLegacy"]
    again = solo.engine.operate("again", *UP)
    assert again.code == 0, again.tail()
    assert _identity(solo) == before


def _identity(stage: Stage) -> dict[str, str]:
    return {r["urn"]: json.dumps(r["outputs"], sort_keys=True) for r in stage.resources() if r.get("protect")}


def test_a_killed_engine_leaves_what_the_next_one_finishes(start: Start, tmp_path: Path) -> None:
    path = stack_file(tmp_path, "killed", single_node)
    stage = start("killed", ["up", "--stack-file", str(path)], "killed")
    _kill_after(stage, "G2")
    assert stage.engine.operate("locked", *UP).code != 0, "a killed engine leaves its lock"
    assert stage.engine.call("cancel", "cancel", "--yes").code == 0
    cleared = stage.engine.operate("clear", "refresh", "--yes", "--skip-preview", "--clear-pending-creates")
    assert cleared.code == 0, cleared.tail()
    resumed = stage.engine.operate("resume", *UP)
    assert resumed.code == 0, resumed.tail()
    preview = stage.engine.operate("settled", "preview", "--expect-no-changes")
    assert preview.code == 0, preview.tail()


def _kill_after(stage: Stage, gate: str) -> None:
    killed = stage.engine.operate("killed", *UP, watch=lambda event: gate in gate_names(event), halt=signal.SIGKILL)
    assert killed.code != 0
    passed = [r["outputs"]["gate"] for r in stage.resources() if "gate" in (r.get("outputs") or {})]
    assert gate in passed
    assert "G18" not in passed
