"""A lab leaves nothing behind, however its launcher ends, and lets nothing out while it runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.launch import PROJECT
from lab.run_directory import RunDirectory
from tests.lab.conftest import Stage, Start, discard, lab

pytestmark = pytest.mark.lab


def processes_of(run: RunDirectory) -> list[str]:
    """Command lines that name the run directory."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if f"{run.root}" in text:
            found.append(text)
    return found


def eventually(condition: Callable[[], bool], patience: float = 60) -> bool:
    deadline = time.monotonic() + patience
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.1)
    return condition()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_launcher_that_ends_takes_everything_with_it(number: signal.Signals) -> None:
    run = RunDirectory.of(PROJECT, f"test-end-{number.name.lower()}-{os.getpid()}")
    launcher = subprocess.Popen(
        [sys.executable, "-m", "lab", "rehearse", "--name", run.name], cwd=PROJECT, stdout=subprocess.DEVNULL
    )
    engine = run.logs / "infra-preview.log"
    assert eventually(engine.exists), "the engine has not begun"
    launcher.send_signal(number)
    code = launcher.wait(timeout=60)
    assert code == (-signal.SIGKILL if number == signal.SIGKILL else 130)
    assert eventually(lambda: not run.alive())
    assert eventually(lambda: not processes_of(run)), processes_of(run)
    assert str(run.root) not in Path("/proc/self/mountinfo").read_text()
    discard(run)


@pytest.fixture(scope="module")
def empty(start: Start) -> Stage:
    return start("empty", ["up"], "infra")


def test_a_lab_that_runs_keeps_its_name_to_itself(empty: Stage) -> None:
    second = lab("up", "--name", empty.run.name)
    assert second.returncode == 2
    assert "running already" in second.stdout


def test_nothing_of_the_outside_can_be_reached(empty: Stage) -> None:
    assert "lo " in (links := empty.shell("ip", "-brief", "link").stdout)
    assert len(links.splitlines()) == 1
    assert empty.shell("getent", "hosts", "example.org").returncode != 0
    assert empty.shell("getent", "hosts", "git.home.arpa").stdout.startswith("127.0.0.3")


def test_down_ends_it(start: Start) -> None:
    stage = start("down", ["up"], "infra")
    assert processes_of(stage.run)
    assert lab("down", stage.run.name).returncode == 0
    assert not processes_of(stage.run)
    assert lab("shell", "--name", stage.run.name, "--", "true").returncode == 2


def test_two_labs_of_one_stack_run_beside_each_other(empty: Stage, start: Start) -> None:
    other = start("beside", ["up"], "infra")
    for stage in (empty, other):
        versions = stage.shell("curl", "--silent", "--fail", "https://factory.talos.dev/versions")
        assert versions.stdout.startswith("["), versions.stderr
