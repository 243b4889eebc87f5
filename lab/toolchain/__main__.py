"""Lists the programs of the lab, and makes them."""

import argparse
import asyncio
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from lab.toolchain.errors import ToolchainError
from lab.toolchain.programs import Programs
from lab.toolchain.reporter import Bars

MIB = 1024**2
INTERRUPTED = 130


def _arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m lab.toolchain", description=__doc__)
    actions = parser.add_subparsers(dest="action")
    actions.add_parser("list", help="name, version, origin and size of every program")
    actions.add_parser("first", help="make what a rehearsal cannot start without")
    actions.add_parser("all", help="make everything")
    actions.add_parser("build", help="make these").add_argument("names", nargs="+")
    return parser.parse_args(arguments)


def _wanted(options: argparse.Namespace) -> list[str]:
    if options.action == "build":
        return list(options.names)
    if options.action in {"first", "all"}:
        return Programs().names(first=True if options.action == "first" else None)
    return []


def _table(programs: Programs) -> Table:
    table = Table("program", "version", "origin")
    table.add_column("MiB", justify="right")
    for item in programs.inventory():
        table.add_row(item.name, item.version, item.origin, f"{item.size / MIB:.0f}" if item.size else "")
    return table


def main(arguments: Sequence[str]) -> int:
    """Do what the arguments ask; 0 when every wanted program is there."""
    console = Console()
    wanted = _wanted(_arguments(arguments))
    bars = Bars(console, len(wanted))
    programs = Programs(reporter=bars)
    try:
        if wanted:
            with bars.progress:
                asyncio.run(programs.resolve_all(wanted))
    except ToolchainError as error:
        console.print(f"[red]{error}", highlight=False)
        return 1
    except KeyboardInterrupt:
        console.print("Interrupted. What was compiled is kept; the same command goes on from there.")
        return INTERRUPTED
    console.print(_table(programs))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
