"""Labs for tests: each is started once, driven through the command line a person uses, and ended."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.engine import Engine
from lab.launch import PROJECT
from lab.run_directory import RunDirectory
from lab.sandbox import Sandbox
from lab.setting import Setting

PATIENCE = 900


def lab(*arguments: str, timeout: float = PATIENCE) -> subprocess.CompletedProcess[str]:
    """`python -m lab …`, as a person would call it."""
    return subprocess.run(
        [sys.executable, "-m", "lab", *arguments],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def discard(run: RunDirectory) -> None:
    """What a test's lab has written, unless somebody wants to look at it."""
    if "LAB_KEEP" not in os.environ:
        shutil.rmtree(run.root, ignore_errors=True)
        run.lock.unlink(missing_ok=True)


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A lab that runs, and one of its stacks."""

    run: RunDirectory
    stack: str

    @property
    def engine(self) -> Engine:
        setting = Setting.read(self.run.setting)
        return Engine(sandbox=Sandbox(run=self.run, user_namespace=setting.user_namespace), stack=self.stack)

    @property
    def report(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads((self.run.root / f"report-{self.stack}.json").read_text())
        return document

    @property
    def requests(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.run.requests.read_text().splitlines()]

    def shell(self, *command: str) -> subprocess.CompletedProcess[str]:
        return lab("shell", "--name", self.run.name, "--", *command)

    def resources(self) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = self.engine.export()["deployment"]["resources"]
        return listed


Start = Callable[..., Stage]


@pytest.fixture(scope="session")
def start() -> Iterator[Start]:
    """Start labs by their stack files; all end with the tests."""
    names: list[str] = []

    def begin(name: str, command: Sequence[str], stack: str) -> Stage:
        name = f"test-{name}-{os.getpid()}"
        names.append(name)
        done = lab(*command, "--name", name)
        assert done.returncode == 0, done.stdout + done.stderr
        return Stage(run=RunDirectory.of(PROJECT, name), stack=stack)

    yield begin
    for name in names:
        lab("down", name)
        discard(RunDirectory.of(PROJECT, name))


@pytest.fixture(scope="session")
def infra(start: Start) -> Stage:
    """The committed infra stack after a whole rehearsal, still running."""
    return start("infra", ["rehearse", "--stack", "infra", "--keep"], "infra")


def stack_file(directory: Path, stack: str, change: Callable[[dict[str, Any]], None]) -> Path:
    """The committed infra file under another name and with a change."""
    document = yaml.safe_load((PROJECT / "Pulumi.infra.yaml").read_text())
    change(document["config"]["groundwork:cluster"])
    path = directory / f"Pulumi.{stack}.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return path
