"""A child process of the lab: logs to a file, dies with the lab, and is stopped politely first."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

PR_SET_PDEATHSIG = 1
GRACE_SECONDS = 5.0
LIBC = ctypes.CDLL(None, use_errno=True)


class Process:
    def __init__(
        self,
        program: Path,
        arguments: Sequence[str],
        *,
        log: Path,
        environment: Mapping[str, str] | None = None,
        directory: Path | None = None,
    ) -> None:
        self.program = program
        self.arguments = list(arguments)
        self.log = log
        self.environment = dict(environment or {})
        self.directory = directory
        self._child: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        with self.log.open("ab") as output:
            self._child = await asyncio.create_subprocess_exec(
                str(self.program),
                *self.arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**_inherited(), **self.environment},
                cwd=self.directory,
                start_new_session=True,
                preexec_fn=_die_with_the_lab,
            )

    @property
    def exit_code(self) -> int | None:
        """None while it runs, and before it was started."""
        return self._child.returncode if self._child else None

    async def wait(self) -> int:
        if self._child is None:
            raise RuntimeError(f"{self.program.name} was never started")
        return await self._child.wait()

    async def stop(self) -> None:
        child = self._child
        if child is None or child.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            child.terminate()
        try:
            await asyncio.wait_for(child.wait(), GRACE_SECONDS)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
            await child.wait()

    def tail(self, lines: int = 5) -> str:
        """The end of its log, for messages about its death."""
        with self.log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 4096))
            return "\n".join(file.read().decode(errors="replace").splitlines()[-lines:])


def free_port() -> int:
    """A port that nobody listens at and that was not handed out before: its first owner may not listen yet."""
    while (port := _unused_port()) in _handed_out:
        pass
    _handed_out.add(port)
    return port


_handed_out: set[int] = set()


def _unused_port() -> int:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _die_with_the_lab() -> None:
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _inherited() -> dict[str, str]:
    """Where certificates and programs are, and nothing that could be a credential or a proxy."""
    kept = ("PATH", "HOME", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "LANG")
    return {name: os.environ[name] for name in kept if name in os.environ}
