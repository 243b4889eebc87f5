"""G12b: every sealed file is sealed for the current key, here and at the Git ref that Flux will read."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic.dataclasses import dataclass

from gates.git import Branch
from gates.session import Session
from gates.target import STRICT, parse
from gates.trouble import TroubleError
from gates.verdict import Failed, Finding, Verdict, Waiting, conclude

ANNOTATION = "groundwork.dev/sealed-for"


@dataclass(frozen=True, kw_only=True, config=STRICT)
class SealedFile:
    path: str
    fingerprint: str


@dataclass(frozen=True, kw_only=True, config=STRICT)
class SealedFilesTarget:
    files: list[SealedFile]
    root: str
    url: str
    branch: str
    publish: Literal["none", "commit", "push"]
    token: str | None = field(repr=False, default=None)


class SealedFilesSession(Session):
    longest_pause = 2.0

    def __init__(self, target: Mapping[str, Any]) -> None:
        self._target = parse(SealedFilesTarget, target)
        self._branch = Branch(self._target.url, self._target.branch, self._target.token)

    async def look(self) -> Verdict:
        here = [found for file in self._target.files if (found := self._stale_here(file))]
        if here:
            return conclude(here, [])
        try:
            commit = await self._branch.fetch()
            there = [found for file in self._target.files if (found := await self._stale_there(file))]
        except TroubleError as trouble:
            return self._unread(trouble)
        evidence = [f"{file.path}: sealed for the current key, at {commit[:12]}" for file in self._target.files]
        if there and self._target.publish != "push":
            return conclude([], [], fatal=there)
        total = len(self._target.files)
        return conclude(there, evidence, done=total - len(there), total=total)

    async def close(self) -> None:
        await asyncio.to_thread(self._branch.close)

    def _stale_here(self, file: SealedFile) -> Finding | None:
        path = Path(self._target.root) / file.path
        found = sealed_for(path.read_bytes()) if path.exists() else None
        if found == file.fingerprint:
            return None
        observed = f"{file.path} is sealed for {found}" if found else f"{file.path} is missing, or not a sealed file"
        return Finding(observed=observed, cause="the sealing key changed after it was written", look=(f"cat {path}",))

    async def _stale_there(self, file: SealedFile) -> Finding | None:
        content = await self._branch.read(file.path)
        if content == (Path(self._target.root) / file.path).read_bytes():
            return None
        state = "is not" if content is None else "is another file"
        return Finding(
            observed=f"{file.path} {state} on {self._target.branch} at {self._target.url}",
            cause="Flux reads from Git: what is not pushed does not exist for it",
            look=self._commands(file),
        )

    def _unread(self, trouble: TroubleError) -> Verdict:
        look = (f"git ls-remote {self._target.url} refs/heads/{self._target.branch}",)
        found = (Finding(observed=trouble.observed, cause=trouble.cause, look=look),)
        return Failed(findings=found) if trouble.hopeless else Waiting(findings=found)

    def _commands(self, file: SealedFile) -> tuple[str, ...]:
        return (
            f"git add -- {file.path}",
            f"git commit -m 'Seal secrets for the current key' -- {file.path}",
            f"git push origin HEAD:{self._target.branch}",
            "pulumi up",
        )


def sealed_for(content: bytes) -> str | None:
    """The fingerprint a sealed manifest names; None when it names none."""
    try:
        manifest = yaml.safe_load(content)
        return str(manifest["metadata"]["annotations"][ANNOTATION])
    except (yaml.YAMLError, KeyError, TypeError):
        return None
