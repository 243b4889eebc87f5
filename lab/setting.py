"""What the launcher tells the world: which stacks to stage, at which pace, with which faults."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from lab.run_directory import write_private
from lab.stackfile import StackFile

PROXMOX_ADDRESS = "127.0.0.2"
INTERNET_ADDRESS = "127.0.0.3"
HOSTS_HEAD = "127.0.0.1 localhost\n::1 localhost\n"


@dataclass(frozen=True, kw_only=True)
class Setting:
    stacks: list[str]
    """Stack files, as absolute paths."""
    addresses: list[str]
    pace: float = 0.0
    user_namespace: bool = True
    faults: list[dict[str, str]] = field(default_factory=list)
    """Switched on before anything runs, in the form the control socket takes."""

    @classmethod
    def read(cls, path: Path) -> Setting:
        return cls(**json.loads(path.read_text(encoding="utf-8")))

    def write(self, path: Path) -> None:
        write_private(path, json.dumps(asdict(self), indent=2))

    def stack_files(self) -> list[StackFile]:
        return [StackFile.read(Path(path)) for path in self.stacks]


def hosts_file(proxmox: list[str], internet: list[str]) -> str:
    """Names the program uses, at the lab's addresses; no other name exists inside."""
    lines = [f"{PROXMOX_ADDRESS} {name}" for name in proxmox] + [f"{INTERNET_ADDRESS} {name}" for name in internet]
    return HOSTS_HEAD + "".join(f"{line}\n" for line in dict.fromkeys(lines))


def write_etc(etc: Path) -> None:
    """The overlaid files as they are before the world knows its names."""
    (etc / "hosts").write_text(HOSTS_HEAD, encoding="utf-8")
    (etc / "resolv.conf").write_text("# no name server: every name of the lab is in /etc/hosts\n", encoding="utf-8")
    (etc / "nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files\n", encoding="utf-8")
