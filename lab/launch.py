"""Starting a lab: from a stack file to a world that answers."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lab import environment, setting, staging, toolbox
from lab.authority import Authority
from lab.control import ControlClient
from lab.fault_plan import FaultRequest
from lab.narrator import Narrator
from lab.run_directory import LabError, RunDirectory, known
from lab.sandbox import Sandbox, stop
from lab.setting import Setting
from lab.stackfile import StackFile

PROJECT = Path(__file__).parent.parent
PATIENCE = 60.0
TAIL = 25


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What the person asked for."""

    name: str
    stacks: Sequence[StackFile]
    pace: float = 0.0
    faults: Sequence[FaultRequest] = field(default_factory=list)
    detached: bool = False
    """Goes on after the launcher has ended."""


def launch(wish: Wish, narrator: Narrator) -> Sandbox:
    run = RunDirectory.of(PROJECT, wish.name)
    sandbox = Sandbox.possible(run)
    toolbox.gather(narrator, first=True)
    lock = run.claim()
    try:
        with narrator.step(f"staging {', '.join(file.stack for file in wish.stacks)} in {run.root}"):
            prepare(wish, sandbox)
        process = sandbox.start(lock, detached=wish.detached, environment=environment.read(run))
    finally:
        os.close(lock)
    try:
        with narrator.step("starting the lab"):
            wait_until_ready(run, process)
    except BaseException:
        process.kill()
        stop(run)
        raise
    return sandbox


def prepare(wish: Wish, sandbox: Sandbox) -> None:
    """Everything on disk that the world and the engine need."""
    run = sandbox.run
    authority = Authority(run.authority)
    authority.bundle()
    staging.stage(PROJECT, run, wish.stacks, authority.certificate.read_text(encoding="utf-8"))
    setting.write_etc(run.etc)
    toolbox.bring_in(run, wish.stacks)
    credentials = environment.Credentials.fresh()
    environment.write(run, environment.program_environment(run, wish.stacks, credentials), credentials)
    Setting(
        stacks=[str(staging.staged_stack_file(run, file)) for file in wish.stacks],
        addresses=list(dict.fromkeys(address for file in wish.stacks for address in file.addresses())),
        pace=wish.pace,
        user_namespace=sandbox.user_namespace,
        faults=[request.document() for request in wish.faults],
    ).write(run.setting)


def wait_until_ready(run: RunDirectory, process: subprocess.Popen[bytes]) -> None:
    """The control socket is the last thing the world opens."""
    client = ControlClient(run)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise LabError(f"the lab did not start:\n{_tail(run)}")
        if run.control.exists():
            try:
                client.status()
            except LabError:
                pass
            else:
                return
        time.sleep(0.05)
    raise LabError(f"the lab was not ready after {PATIENCE:.0f} s:\n{_tail(run)}")


def _tail(run: RunDirectory) -> str:
    lines = (run.logs / "world.log").read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join([*lines[-TAIL:], f"(the whole log: {run.logs / 'world.log'})"])


def chosen(name: str | None, *, alive: bool = True) -> RunDirectory:
    """The lab that is meant: the named one, or the only one there is."""
    if name:
        run = RunDirectory.of(PROJECT, name)
        if not run.root.exists() or (alive and not run.alive()):
            raise LabError(
                f"the lab {name!r} is not {'running' if alive else 'there'}: `python -m lab status` lists them"
            )
        return run
    runs = [run for run in known(PROJECT) if run.alive() or not alive]
    if len(runs) != 1:
        what = (
            f"{len(runs)} labs are there ({', '.join(r.name for r in runs)}): name one" if runs else "no lab is running"
        )
        raise LabError(what)
    return runs[0]
