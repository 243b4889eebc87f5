"""Try the faults in the lab: each must be caught at its gate, and the next run must go on from there."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import yaml

from lab.engine import Engine
from lab.fault_result import Result
from lab.fault_table import APART, GROWING, LIVING_TRIALS, Trial
from lab.fault_walk import Walk
from lab.launch import PROJECT, Wish, launch
from lab.narrator import Narrator
from lab.sandbox import stop
from lab.stackfile import StackFile

NODES = ("infra-cp-1", "infra-cp-2", "infra-cp-3", "infra-w-1")
STACK = "infra"


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    narrator = Narrator()
    growing, living, apart = (_chosen(trials, options.fault) for trials in (GROWING, LIVING_TRIALS, APART))
    results = perform(options.name, growing, living, narrator) if growing or living else []
    results += perform(f"{options.name}-apart", apart, [], narrator) if apart else []
    columns = ("fault", "gate", "caught at", "converged", "not as it must be")
    rows = [(r.trial, r.gate, r.caught_at, str(r.converged), "; ".join(r.complaints)) for r in results]
    narrator.table("faults", columns, rows)
    return 0 if all(result.good for result in results) else 1


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m lab.fault_runs", description=__doc__)
    top.add_argument("--name", default="faults", help="name of the lab; its directory keeps the results")
    top.add_argument("fault", nargs="*", help="only these (default: all)")
    return top


def perform(name: str, growing: Sequence[Trial], living: Sequence[Trial], narrator: Narrator) -> list[Result]:
    """In a lab of its own, which is ended afterwards; its directory stays."""
    with tempfile.TemporaryDirectory() as folder:
        file = StackFile.read(small_stack(Path(folder)))
        sandbox = launch(Wish(name=name, stacks=[file]), narrator)
        try:
            engine = Engine(sandbox=sandbox, stack=file.stack)
            engine.prepare()
            return Walk(engine=engine, narrator=narrator, nodes=file.nodes).perform(growing, living)
        finally:
            stop(sandbox.run)


def small_stack(folder: Path) -> Path:
    """The committed stack with as few nodes as the faults need, and time limits of seconds."""
    document = yaml.safe_load((PROJECT / f"Pulumi.{STACK}.yaml").read_text(encoding="utf-8"))
    cluster = document["config"]["groundwork:cluster"]
    cluster["nodes"] = {name: cluster["nodes"][name] for name in NODES}
    cluster["timeouts"] = {"attempt": 1, "helm_release": 2, "kustomization": 3}
    path = folder / f"Pulumi.{STACK}.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return path


def _chosen(trials: Sequence[Trial], names: Sequence[str]) -> list[Trial]:
    return [trial for trial in trials if not names or trial.name in names or trial.fault in names]


if __name__ == "__main__":
    sys.exit(main())
