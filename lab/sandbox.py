"""The namespaces a lab lives in, seen from outside: how to make them, enter them and be sure they are gone."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab.run_directory import LabError, RunDirectory

NAMESPACES = ("--net", "--mount", "--fork", "--pid", "--mount-proc", "--kill-child")
USER_NAMESPACE = ("--user", "--map-root-user")
ENTER = ("--net", "--mount", "--pid")
ENTER_USER = ("--user", "--preserve-credentials")
PR_SET_PDEATHSIG = 1
IN_DIRECTORY = 'cd -- "$1" && shift && exec "$@"'
"""A process that enters a mount namespace begins at its root."""

NO_NAMESPACES = """\
this machine lets nobody make a network namespace: {reason}
Ways out: run the lab as root; or allow user namespaces with
  sysctl -w kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000
  sysctl -w kernel.apparmor_restrict_unprivileged_userns=0   (Ubuntu 23.10 and later)
in a container, start it with --privileged or --security-opt seccomp=unconfined --cap-add SYS_ADMIN"""


@dataclass(frozen=True, kw_only=True)
class Sandbox:
    run: RunDirectory
    user_namespace: bool

    @classmethod
    def possible(cls, run: RunDirectory) -> Sandbox:
        """The kind of sandbox this machine allows; says what to do when it allows none."""
        require("unshare", "nsenter", "ip", "mount", "git")
        reason = _refusal([*USER_NAMESPACE, *NAMESPACES])
        if reason is None:
            return cls(run=run, user_namespace=True)
        if os.geteuid() == 0 and _refusal(NAMESPACES) is None:
            return cls(run=run, user_namespace=False)
        raise LabError(NO_NAMESPACES.format(reason=reason))

    def start(self, lock: int, *, detached: bool, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """Start the lab's first process; unless detached, it dies with the launcher."""
        options = [*(USER_NAMESPACE if self.user_namespace else ()), *NAMESPACES]
        with (self.run.logs / "world.log").open("ab") as log:
            return subprocess.Popen(
                ["unshare", *options, sys.executable, "-m", "lab.init", str(self.run.root), str(lock)],
                cwd=Path(__file__).parent.parent,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=[lock],
                start_new_session=True,
                preexec_fn=None if detached else die_with_parent,  # noqa: PLW1509 — the launcher has one thread here
            )

    def command(self, argv: Sequence[str], *, directory: Path) -> list[str]:
        """The command that runs `argv` inside."""
        options = [*(ENTER_USER if self.user_namespace else ()), *ENTER, "--target", str(world_pid(self.run))]
        return ["nsenter", *options, "--", "/bin/sh", "-c", IN_DIRECTORY, "lab", str(directory), *argv]


def require(*programs: str) -> None:
    packages = {"ip": "iproute2", "git": "git"}
    missing = [program for program in programs if shutil.which(program, path=search_path()) is None]
    if missing:
        wanted = sorted({packages.get(program, "util-linux") for program in missing})
        raise LabError(f"not installed: {', '.join(missing)}. Install {' and '.join(wanted)} and start again.")


def search_path() -> str:
    """PATH, and where `ip` is on systems that keep it from ordinary users."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


def die_with_parent() -> None:
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def world_pid(run: RunDirectory) -> int:
    """The world's process id as this side sees it: the kernel names who listens at the control socket."""
    with socket.socket(socket.AF_UNIX) as client:
        try:
            with short_name(run.control) as name:
                client.connect(name)
        except OSError:
            raise LabError(f"the lab {run.name!r} is not running: `python -m lab up` starts one") from None
        credentials = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid: int = struct.unpack("3i", credentials)[0]
    return pid


@contextmanager
def short_name(path: Path) -> Iterator[str]:
    """A name for a socket that fits into the 107 bytes the kernel allows, however deep its directory."""
    directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{directory}/{path.name}"
    finally:
        os.close(directory)


def stop(run: RunDirectory, *, patience: float = 15.0) -> None:
    """End a lab and everything in it; returns when nothing is left."""
    try:
        pid = world_pid(run)
    except LabError:
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            break
        if _gone(run, patience):
            return
    if not _gone(run, patience):
        raise LabError(f"process {pid} of the lab {run.name!r} does not end")


def _gone(run: RunDirectory, patience: float) -> bool:
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        if not run.alive():
            return True
        time.sleep(0.05)
    return False


def _refusal(options: Sequence[str]) -> str | None:
    tried = subprocess.run(["unshare", *options, "true"], capture_output=True, text=True, check=False, timeout=20)
    return None if tried.returncode == 0 else tried.stderr.strip()
