"""Go on after the engine was killed: `make resume STACK=infra`.

A killed engine leaves its lock and a list of what it had begun to create. Each of it exists, or does not, or is half
made: what exists is adopted, what is half made is removed, and then `pulumi up` goes on. It never bootstraps a second
etcd. Run it only when no engine works on the stack any more.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Mapping, Sequence
from functools import partial

from operations.adopt import Witnesses
from operations.hypervisor import Say
from operations.pending import Action, Finding, Pending, pending_creates, settled, unfinished
from operations.stack import Stack, StackError

UNATTENDED = ("--yes", "--skip-preview", "--suppress-outputs")


async def findings(pending: Sequence[Pending], witnesses: Witnesses, say: Say) -> dict[str, Finding]:
    """What became of each creation, by URN; asked side by side."""
    found = await asyncio.gather(*(witnesses.find(each) for each in pending))
    for each, finding in zip(pending, found, strict=True):
        say(f"{each.name}: {finding.observed}; {finding.action.value}")
    return {each.urn: finding for each, finding in zip(pending, found, strict=True)}


def of(action: Action, found: Mapping[str, Finding]) -> list[str]:
    return [urn for urn, finding in found.items() if finding.action is action]


def settle(stack: Stack, say: Say) -> int:
    """Leave nothing pending in the state; 0 when the way is free."""
    exported = stack.state()
    pending, touched = pending_creates(exported), unfinished(exported)
    if not (exported.get("deployment") or {}).get("pending_operations"):
        say("nothing was left pending")
        return 0
    witnesses = Witnesses(
        cluster=stack.cluster(),
        state=stack.state(show_secrets=True),
        proxmox_token=partial(stack.secret, "proxmoxToken"),
        say=say,
    )
    found = asyncio.run(findings(pending, witnesses, say))
    stack.put_state(settled(exported, found))
    seen, half = [*of(Action.ADOPT, found), *touched], of(Action.ANEW, found)
    return _only(stack, "refresh", seen) or _only(stack, "destroy", half)


def _only(stack: Stack, command: str, urns: Sequence[str]) -> int:
    if not urns:
        return 0
    return stack.run(command, *UNATTENDED, *(part for urn in urns for part in ("--target", urn)))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make resume", description=__doc__)
    parser.add_argument("--stack", default="infra", help="the stack to go on with")
    stack = Stack(parser.parse_args(arguments).stack)
    try:
        stack.cluster()
        stack.run("cancel", "--yes")
        code = settle(stack, _say)
    except StackError as error:
        _say(str(error))
        return 2
    return code or stack.run("up", *UNATTENDED)


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
