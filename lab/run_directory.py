"""One run of the lab on disk: everything it writes outside the toolchain's cache."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

FOLDER = ".lab"


class LabError(Exception):
    """Something the person at the keyboard can put right; the message says how."""


@dataclass(frozen=True, kw_only=True)
class RunDirectory:
    root: Path

    @classmethod
    def of(cls, project: Path, name: str) -> RunDirectory:
        if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,40}", name):
            raise LabError(f"{name!r} is no name for a lab: lower-case letters, digits and hyphens, please")
        return cls(root=project / FOLDER / name)

    @property
    def name(self) -> str:
        return self.root.name

    @property
    def project(self) -> Path:
        """The copy of the project that the engine runs."""
        return self.root / "project"

    @property
    def git(self) -> Path:
        """The bare repositories of the lab's Git host."""
        return self.root / "git"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def requests(self) -> Path:
        return self.logs / "requests.jsonl"

    @property
    def events(self) -> Path:
        """Engine event logs; a fault that waits for a stage waits for a line in one of them."""
        return self.root / "events"

    @property
    def state(self) -> Path:
        """The engine's file backend."""
        return self.root / "state"

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def pulumi_home(self) -> Path:
        return self.home / ".pulumi"

    @property
    def temporary(self) -> Path:
        return self.root / "tmp"

    @property
    def authority(self) -> Path:
        return self.root / "authority"

    @property
    def etc(self) -> Path:
        """Files laid over those of /etc inside."""
        return self.root / "etc"

    @property
    def runtime(self) -> Path:
        """What the emulators and the control plane keep."""
        return self.root / "world"

    @property
    def setting(self) -> Path:
        """What the world is told when it starts."""
        return self.root / "setting.json"

    @property
    def environment(self) -> Path:
        """The environment of programs inside, secrets included; readable by its owner only."""
        return self.root / "environment.json"

    @property
    def toolchain(self) -> Path:
        """Where the run's programs and modules are; it grows while late ones are made."""
        return self.root / "toolchain.json"

    @property
    def control(self) -> Path:
        return self.root / "control.sock"

    @property
    def lock(self) -> Path:
        """Held as long as anything of this lab lives."""
        return self.root.parent / f"{self.name}.lock"

    @property
    def report(self) -> Path:
        return self.root / "report.json"

    def alive(self) -> bool:
        if not self.lock.exists():
            return False
        with self.lock.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def claim(self) -> int:
        """An empty directory, and the lock on it as a file descriptor to be handed to the sandbox."""
        self.root.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise LabError(
                f"the lab {self.name!r} is running already: `python -m lab down {self.name}` ends it, "
                "`--name` starts another beside it"
            ) from None
        shutil.rmtree(self.root, ignore_errors=True)
        self._lay_out()
        return descriptor

    def _lay_out(self) -> None:
        self.root.mkdir(mode=0o700)
        for folder in (self.logs, self.events, self.state, self.pulumi_home, self.temporary, self.etc, self.runtime):
            folder.mkdir(parents=True)


def known(project: Path) -> list[RunDirectory]:
    """Every lab of this project that has left something, alive or not."""
    folders = sorted((project / FOLDER).glob("*/")) if (project / FOLDER).is_dir() else []
    return [RunDirectory(root=folder) for folder in folders]


def write_private(path: Path, text: str) -> None:
    """A file that only its owner could ever read."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
