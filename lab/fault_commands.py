"""What `python -m lab fault …` does."""

from __future__ import annotations

import argparse
from pathlib import Path

import yaml

from lab.control import ControlClient
from lab.fault_catalogue import CATALOGUE
from lab.fault_plan import FaultRequest
from lab.launch import chosen
from lab.narrator import Narrator
from lab.run_directory import LabError


def add(options: argparse.Namespace, narrator: Narrator) -> int:
    requests = read_file(options.file) if options.file else [_fault_request(options)]
    client = ControlClient(chosen(options.lab))
    for request in requests:
        client.add_fault(request)
    return show(options, narrator)


def show(options: argparse.Namespace, narrator: Narrator) -> int:
    faults = ControlClient(chosen(options.lab)).faults()
    rows = [[str(fault.get(key, "")) for key in ("name", "node", "for", "after", "state")] for fault in faults]
    narrator.table("faults", ("fault", "node", "for", "after", "state"), rows)
    return 0


def remove(options: argparse.Namespace, narrator: Narrator) -> int:
    removed = ControlClient(chosen(options.lab)).remove_fault(options.fault, options.node)
    narrator.say(f"{removed} removed")
    return 0 if removed else 1


def catalogue(_options: argparse.Namespace, narrator: Narrator) -> int:
    rows = [(name, entry.imitates, entry.seen, entry.gate) for name, entry in sorted(CATALOGUE.items())]
    narrator.table("faults the lab can imitate", ("fault", "imitates", "seen", "caught by"), rows)
    return 0


def read_file(path: Path | None) -> list[FaultRequest]:
    if path is None:
        return []
    listed = yaml.safe_load(path.read_text(encoding="utf-8"))
    if not isinstance(listed, list):
        raise LabError(f"{path} is no list of faults, such as `- {{name: etcd-never-joins, node: infra-cp-2}}`")
    return [FaultRequest.parse(item) for item in listed]


def _fault_request(options: argparse.Namespace) -> FaultRequest:
    if not options.fault:
        raise LabError("which fault? `python -m lab fault catalogue` lists them")
    pairs = [str(option).partition("=") for option in options.option]
    return FaultRequest(
        name=options.fault,
        node=options.node,
        seconds=options.seconds,
        after=options.after,
        options={key: value for key, _, value in pairs},
    )
