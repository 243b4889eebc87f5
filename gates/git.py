"""Reads one branch of a Git repository with git itself, into a bare directory that is thrown away."""

from __future__ import annotations

import asyncio
import base64
import os
import tempfile
from pathlib import Path

from gates.session import ATTEMPT
from gates.trouble import TroubleError

REFUSALS = ("authentication failed", "could not read username", "http 401", "403", "access denied", "permission denied")


class Branch:
    """A branch as it is at its origin; fetched, never checked out."""

    def __init__(self, url: str, branch: str, token: str | None) -> None:
        self.url, self.branch = url, branch
        self._environment = environment(url, token)
        self._directory = tempfile.TemporaryDirectory(prefix="gate-")

    async def fetch(self) -> str:
        """The commit the branch points to; raises TroubleError."""
        if not (Path(self._directory.name) / "HEAD").exists():
            await self._git("init", "--quiet", "--bare")
        await self._git("fetch", "--quiet", "--depth", "1", "--", self.url, f"refs/heads/{self.branch}")
        return (await self._git("rev-parse", "FETCH_HEAD")).decode().strip()

    async def read(self, path: str) -> bytes | None:
        """A file of the commit fetched last; None when it has no such file."""
        listed = await self._git("ls-tree", "-z", "--name-only", "FETCH_HEAD", "--", path)
        if not listed:
            return None
        return await self._git("show", f"FETCH_HEAD:{path}")

    def close(self) -> None:
        self._directory.cleanup()

    async def _git(self, *arguments: str) -> bytes:
        process = await asyncio.create_subprocess_exec(
            "git",
            *arguments,
            cwd=self._directory.name,
            env=self._environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(ATTEMPT):
                out, told = await process.communicate()
        except TimeoutError:
            raise TroubleError(f"{self.url}: no answer within {ATTEMPT:.0f} s", "the Git host is unreachable") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            raise self._trouble(told.decode(errors="replace"))
        return out

    def _trouble(self, told: str) -> TroubleError:
        line = next((each for each in reversed(told.strip().splitlines()) if each), "git failed")
        if any(word in told.lower() for word in REFUSALS):
            return TroubleError(f"{self.url}: {line}", "the Git token is wrong, expired or lacks access", hopeless=True)
        if "couldn't find remote ref" in told:
            return TroubleError(f"{self.url}: no branch {self.branch}", "nothing was pushed there yet, or another name")
        return TroubleError(f"{self.url}: {line}", "the Git host is unreachable, or the address is wrong")


def environment(url: str, token: str | None) -> dict[str, str]:
    """The token is in the environment of this one process: in no argument, in no file."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    trust = os.environ.get("GIT_SSL_CAINFO") or os.environ.get("SSL_CERT_FILE")
    settings = {"credential.helper": ""}
    if token:
        basic = base64.b64encode(f"git:{token}".encode()).decode()
        settings[f"http.{url}.extraHeader"] = f"Authorization: Basic {basic}"
    numbered = enumerate(settings.items())
    return {
        **inherited,
        **({"GIT_SSL_CAINFO": trust} if trust else {}),
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_COUNT": str(len(settings)),
        **{
            variable: text
            for index, (key, value) in numbered
            for variable, text in ((f"GIT_CONFIG_KEY_{index}", key), (f"GIT_CONFIG_VALUE_{index}", value))
        },
    }
