"""An engine killed in the middle of its work, and `make resume` after it, on the real engine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab import environment
from lab.engine import children
from tests.lab.conftest import Stage, Start, lab, stack_file

pytestmark = [pytest.mark.lab, pytest.mark.trial]

PATIENCE = 300
MACHINE, BOOTSTRAP = "proxmoxve:index/vmLegacy:VmLegacy", "talos:machine/bootstrap:Bootstrap"
UP = ["pulumi", "up", "--yes", "--skip-preview", "--non-interactive", "--suppress-outputs"]
BOOTSTRAP_NOW = """
import asyncio
from operations.adopt import SECRETS, _clear
from operations.stack import Stack
from talos_api.client import TalosClient
from talos_api.credentials import Credentials
stack = Stack("{stack}")
records = stack.state(show_secrets=True)["deployment"]["resources"]
issued = _clear(next(r for r in records if r["type"] == SECRETS)["outputs"]["clientConfiguration"])
keys = dict(ca=issued["caCertificate"], certificate=issued["clientCertificate"], key=issued["clientKey"])
async def main():
    client = TalosClient("10.25.11.11", Credentials.from_base64(**keys))
    await client.bootstrap()
    client.close()
asyncio.run(main())
"""


def single_node(cluster: dict[str, Any]) -> None:
    cluster["nodes"] = {name: node for name, node in cluster["nodes"].items() if name == "infra-cp-1"}
    cluster["talos"]["allow_scheduling_on_control_planes"] = True


@pytest.fixture
def stage(start: Start, tmp_path: Path, request: pytest.FixtureRequest) -> Stage:
    name = request.node.name.split("_")[1]
    return start(f"resume-{name}", ["up", "--stack-file", str(stack_file(tmp_path, "infra", single_node))], "infra")


def pending(stage: Stage) -> list[str]:
    """Types of what the state file says is being created."""
    (path,) = stage.run.state.glob(f".pulumi/stacks/**/{stage.stack}.json")
    try:
        latest = json.loads(path.read_text())["checkpoint"]["latest"] or {}
    except ValueError:
        return []
    return [each["resource"]["type"] for each in latest.get("pending_operations") or []]


def kill_while(stage: Stage, creating: str, *, ready: Callable[[], bool] = lambda: True, plugins: bool = False) -> None:
    """Start `up`; end the engine, and its plugins where asked, with no chance to tidy up."""
    command = stage.engine.sandbox.command([*UP, "--stack", stage.stack], directory=stage.run.project)
    log = stage.run.logs / "killed-up.log"
    with log.open("wb") as output:
        entered = subprocess.Popen(command, env=environment.read(stage.run), stdout=output, stderr=subprocess.STDOUT)
    deadline = time.monotonic() + PATIENCE
    while not (creating in pending(stage) and ready()) and time.monotonic() < deadline and entered.poll() is None:
        time.sleep(0.02)
    for engine in children(entered.pid):
        for process in [engine, *(children(engine) if plugins else [])]:
            os.kill(process, signal.SIGKILL)
    entered.wait(timeout=60)
    assert creating in pending(stage), log.read_text()[-4000:]


def resume(stage: Stage) -> str:
    done = stage.shell("python", "-m", "operations.resume", "--stack", stage.stack)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert pending(stage) == []
    settled = stage.engine.operate("settled", "preview", "--expect-no-changes")
    assert settled.code == 0, settled.tail()
    return done.stderr


def made(stage: Stage) -> bool:
    return any(each.get("method") == "POST" and each["path"].endswith("/qemu") for each in stage.requests)


def writes(stage: Stage, ending: str) -> int:
    return sum(bool(each.get("write")) and str(each["path"]).endswith(ending) for each in stage.requests)


def test_machine_that_became_whole_is_adopted(stage: Stage) -> None:
    lab("fault", "--name", stage.run.name, "add", "task-slow", "--option", "seconds=5")
    kill_while(stage, MACHINE, ready=lambda: made(stage))
    lab("fault", "--name", stage.run.name, "remove", "task-slow")
    assert "VM 1111 on atlas runs; adopted" in resume(stage)
    assert writes(stage, "/nodes/atlas/qemu") == 1


def test_unfinished_machine_is_removed_and_made_anew(stage: Stage) -> None:
    lab("fault", "--name", stage.run.name, "add", "task-slow", "--option", "seconds=5")
    kill_while(stage, MACHINE, ready=lambda: made(stage), plugins=True)
    lab("fault", "--name", stage.run.name, "remove", "task-slow")
    assert "VM 1111 on atlas never started" in resume(stage)
    assert writes(stage, "/nodes/atlas/qemu") == 2


def test_bootstrap_that_happened_is_adopted_and_not_repeated(stage: Stage) -> None:
    kill_while(stage, BOOTSTRAP, plugins=True)
    # Whether the plugin's request got through before it died is chance; here it did.
    stage.shell("python", "-c", BOOTSTRAP_NOW.format(stack=stage.stack))
    before = writes(stage, "/Bootstrap")
    assert "infra-bootstrap: etcd is there already" in resume(stage)
    assert writes(stage, "/Bootstrap") == before
