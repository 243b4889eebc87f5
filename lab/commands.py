"""What each command of the lab's command line does."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from collections.abc import Sequence

from lab import client_files, environment, fault_commands, rehearsal, toolbox
from lab.control import ControlClient
from lab.engine import Engine
from lab.late_supply import LateSupply
from lab.launch import PROJECT, Wish, chosen, launch
from lab.narrator import Narrator
from lab.rehearsal import Rehearsal
from lab.report import Report
from lab.run_directory import LabError, RunDirectory, known
from lab.sandbox import Sandbox, stop
from lab.setting import Setting
from lab.stackfile import StackFile

STACKS = ("infra", "apps")


def rehearse(options: argparse.Namespace, narrator: Narrator) -> int:
    keep = bool(options.keep or options.until)
    wish = _wish(options, detached=keep)
    sandbox = launch(wish, narrator)
    try:
        with LateSupply(sandbox.run, wish.stacks, narrator):
            reports = [_rehearse_stack(sandbox, file, options, narrator) for file in wish.stacks]
    except BaseException:
        stop(sandbox.run)
        raise
    if keep:
        narrator.say(f"the lab goes on: `python -m lab shell --name {wish.name}`, `python -m lab down {wish.name}`")
    else:
        stop(sandbox.run)
    return 0 if all(report.success for report in reports) else 1


def _rehearse_stack(sandbox: Sandbox, file: StackFile, options: argparse.Namespace, narrator: Narrator) -> Report:
    return Rehearsal(
        engine=Engine(sandbox=sandbox, stack=file.stack),
        narrator=narrator,
        programs=toolbox.origins(),
        pace=options.pace,
        until=options.until,
    ).perform()


def up(options: argparse.Namespace, narrator: Narrator) -> int:
    wish = _wish(options, detached=True)
    toolbox.gather(narrator, first=False)
    sandbox = launch(wish, narrator)
    for file in wish.stacks:
        with narrator.step(f"{file.stack}: an empty stack"):
            Engine(sandbox=sandbox, stack=file.stack).prepare()
    narrator.say(f"running: `python -m lab shell --name {wish.name}`, end it with `python -m lab down {wish.name}`")
    return 0


def down(options: argparse.Namespace, narrator: Narrator) -> int:
    run = chosen(options.name, alive=options.name is None)
    with narrator.step(f"ending {run.name}"):
        stop(run)
    return 0


def status(options: argparse.Namespace, narrator: Narrator) -> int:
    runs = [chosen(options.name)] if options.name else known(PROJECT)
    narrator.table("labs", ("name", "state", "directory"), [(r.name, _state(r), str(r.root)) for r in runs])
    for run in filter(RunDirectory.alive, runs):
        seen = ControlClient(run).status()
        narrator.table(f"{run.name}: machines", ("vmid", "name", "host", "address", "stage"), seen["machines"])
        narrator.table(f"{run.name}: clusters", ("cluster", "API server", "etcd members"), seen["clusters"])
    return 0


def show_report(options: argparse.Namespace, narrator: Narrator) -> int:
    run = chosen(options.name, alive=False)
    paths = sorted(run.root.glob("report-*.json"))
    if not paths:
        raise LabError(f"the lab {run.name!r} has no report yet: `python -m lab rehearse` makes one")
    reports = [Report.read(json.loads(path.read_text(encoding="utf-8"))) for path in paths]
    for path, result in zip(paths, reports, strict=True):
        rehearsal.tell(result, narrator)
        narrator.say(f"the whole report: {path}")
    return 0 if all(report.success for report in reports) else 1


def shell(options: argparse.Namespace, narrator: Narrator) -> int:
    """Inside, with clients that find the cluster as far as the stack has brought it forth."""
    run = chosen(options.name)
    setting = Setting.read(run.setting)
    sandbox = Sandbox(run=run, user_namespace=setting.user_namespace)
    files = {file.stack: file for file in setting.stack_files()}
    stack = options.stack or next(iter(files))
    state = Engine(sandbox=sandbox, stack=stack).export(show_secrets=True)
    roles = {str(node["address"]): str(node["role"]) for node in files[stack].nodes.values()}
    variables = environment.read(run) | client_files.write(state, run.root, stack, roles) | {"PULUMI_STACK": stack}
    command = [part for part in options.command if part != "--"] or [os.environ.get("SHELL", "/bin/sh")]
    if not options.command:
        narrator.say(f"inside the lab {run.name}; pulumi, kubectl and talosctl are on the PATH, exit leaves")
    return subprocess.run(sandbox.command(command, directory=run.project), env=variables, check=False).returncode


def toolchain(_options: argparse.Namespace, narrator: Narrator) -> int:
    columns = ("name", "version", "origin", "size")
    narrator.table("toolchain", columns, [[row.get(column, "") for column in columns] for row in toolbox.origins()])
    return 0


def _wish(options: argparse.Namespace, *, detached: bool) -> Wish:
    files = _stack_files(options)
    return Wish(
        name=options.name or ("all" if len(files) > 1 else files[0].stack),
        stacks=files,
        pace=options.pace,
        faults=fault_commands.read_file(options.faults),
        detached=detached,
    )


def _stack_files(options: argparse.Namespace) -> Sequence[StackFile]:
    if options.stack_file:
        return [StackFile.read(options.stack_file)]
    names = STACKS if options.stack == "all" else (options.stack,)
    return [StackFile.read(PROJECT / f"Pulumi.{name}.yaml") for name in names]


def _state(run: RunDirectory) -> str:
    return "running" if run.alive() else "ended"
