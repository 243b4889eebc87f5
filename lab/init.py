"""The first process inside a lab's namespaces: it gives them their addresses and names, and ends with the world."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from lab.run_directory import RunDirectory
from lab.setting import Setting

OVERLAID = ("hosts", "resolv.conf", "nsswitch.conf")


def main(root: Path, lock: int) -> int:
    run = RunDirectory(root=root)
    raise_addresses(Setting.read(run.setting).addresses)
    overlay(run.etc)
    world = subprocess.Popen([sys.executable, "-m", "lab.world", str(root)], pass_fds=[lock])
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _frame: world.send_signal(number))
    return reap_until(world.pid)


def raise_addresses(addresses: Iterable[str]) -> None:
    """Everything the stack names is on the loopback device, so nothing needs a route and nothing can leave."""
    commands = ["link set lo up", *(f"address add {address}/32 dev lo" for address in addresses)]
    subprocess.run(["ip", "-batch", "-"], input="\n".join(commands), text=True, check=True)


def overlay(etc: Path) -> None:
    """Lay the lab's files over the system's; a file the system has not is not missed."""
    for name in OVERLAID:
        target = Path("/etc", name)
        if target.exists():
            subprocess.run(["mount", "--bind", str(etc / name), str(target.resolve())], check=True)


def reap_until(pid: int) -> int:
    """Wait for every orphan of the namespace until the world itself has ended."""
    while True:
        ended, status = os.wait()
        if ended == pid:
            return os.waitstatus_to_exitcode(status) & 0xFF


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))
