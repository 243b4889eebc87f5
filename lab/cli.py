"""The command line of the lab."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

from lab import commands, fault_commands
from lab.narrator import Narrator
from lab.run_directory import LabError
from lab.stackfile import StackFileError

EPILOG = """\
examples:
  python -m lab rehearse --stack infra           preview, up, second preview; exit code 0 = healthy
  python -m lab rehearse --until G5 --keep       stop after the Kubernetes API gate and look around
  python -m lab up && python -m lab shell        an empty lab and a shell in it: pulumi, kubectl, talosctl
  python -m lab fault add etcd-never-joins --node infra-cp-2 --for 60
exit codes: 0 success, 1 the rehearsal failed, 2 wrong usage or something to put right first, 130 interrupted
"""


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    narrator = Narrator()
    # Also where whoever started this had it ignored, as shells do for what runs in the background.
    signal.signal(signal.SIGINT, _interrupt)
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGHUP, _interrupt)
    run: Callable[[argparse.Namespace, Narrator], int] = options.run
    try:
        return run(options, narrator)
    except (LabError, StackFileError) as error:
        narrator.fail(str(error))
        return 2
    except KeyboardInterrupt:
        narrator.say("interrupted; nothing of this lab is left running")
        return 130


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="python -m lab",
        description="Rehearse a stack: the unmodified program on the real engine, in a network of its own.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = top.add_subparsers(required=True, metavar="command")
    _rehearse(verbs.add_parser("rehearse", help="preview, up and second preview of a stack, then the timeline"))
    _up(verbs.add_parser("up", help="start a lab and leave it running"))
    _named(verbs.add_parser("down", help="end a lab and everything in it"), commands.down)
    _named(verbs.add_parser("status", help="what runs in a lab"), commands.status)
    _named(verbs.add_parser("report", help="the timeline of the last rehearsal"), commands.show_report)
    _shell(verbs.add_parser("shell", help="a shell or one command inside a lab"))
    _fault(verbs.add_parser("fault", help="switch faults on and off"))
    toolchain = verbs.add_parser("toolchain", help="the programs the lab uses: name, version, origin, size")
    toolchain.set_defaults(run=commands.toolchain)
    return top


def _staged(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--stack", choices=["infra", "apps", "all"], default="infra", help="which committed stack file")
    verb.add_argument("--stack-file", type=Path, metavar="FILE", help="a stack file of your own instead")
    verb.add_argument("--name", help="name of the lab, when several of one stack run at once (default: the stack)")
    verb.add_argument("--pace", type=float, default=0.0, help="0: as fast as it can, 1: the waits of real hardware")
    verb.add_argument("--faults", type=Path, metavar="FILE", help="YAML list of faults to begin with")


def _rehearse(verb: argparse.ArgumentParser) -> None:
    _staged(verb)
    verb.add_argument("--until", metavar="GATE", help="stop the engine after this gate (G5) or probe (kube-api)")
    verb.add_argument("--keep", action="store_true", help="leave the lab running afterwards")
    verb.set_defaults(run=commands.rehearse)


def _up(verb: argparse.ArgumentParser) -> None:
    _staged(verb)
    verb.set_defaults(run=commands.up)


def _named(verb: argparse.ArgumentParser, run: Callable[[argparse.Namespace, Narrator], int]) -> None:
    verb.add_argument("name", nargs="?", help="the lab, when there is more than one")
    verb.set_defaults(run=run)


def _shell(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--name", help="the lab, when there is more than one")
    verb.add_argument("--stack", help="the stack whose kubeconfig and talosconfig to use, when the lab has several")
    verb.add_argument("command", nargs=argparse.REMAINDER, help="-- COMMAND …: run it instead of a shell")
    verb.set_defaults(run=commands.shell)


def _fault(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--name", dest="lab", help="the lab, when there is more than one")
    verbs = verb.add_subparsers(required=True, metavar="action")
    add = verbs.add_parser("add", help="switch a fault on, now or after a stage")
    add.add_argument("fault", nargs="?", help="its name in the catalogue")
    add.add_argument("--node", help="strike only this node, host or object")
    add.add_argument("--for", dest="seconds", type=float, metavar="SECONDS", help="goes away by itself after that")
    add.add_argument("--after", metavar="STAGE", help="strike once this gate (G5) or probe (kube-api) has passed")
    add.add_argument("--option", action="append", default=[], metavar="KEY=VALUE")
    add.add_argument("--file", type=Path, help="a YAML list of faults instead")
    add.set_defaults(run=fault_commands.add)
    verbs.add_parser("list", help="those that strike or wait").set_defaults(run=fault_commands.show)
    verbs.add_parser("catalogue", help="all there are").set_defaults(run=fault_commands.catalogue)
    remove = verbs.add_parser("remove", help="switch a fault off")
    remove.add_argument("fault")
    remove.add_argument("--node", help="only on this node")
    remove.set_defaults(run=fault_commands.remove)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
