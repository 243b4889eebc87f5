"""The environment of programs inside a lab: made from nothing, so that no ambient credential or proxy gets in."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sys
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.run_directory import RunDirectory, write_private
from lab.stackfile import StackFile, environment_name

KEPT = ("LANG", "LC_ALL", "TERM", "COLORTERM", "TZ")
TOOLS = ("git", "ip", "mount", "sh", "tar")
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"


@dataclass(frozen=True, kw_only=True)
class Credentials:
    """What the lab's services accept; new for every run."""

    proxmox: str
    admin: str
    csi: str
    git: str

    @classmethod
    def fresh(cls) -> Credentials:
        return cls(
            proxmox=f"groundwork@pve!provision={uuid.uuid4()}",
            admin=f"root@pam!lab={uuid.uuid4()}",
            csi=f"groundwork-csi@pve!driver={uuid.uuid4()}",
            git=secrets.token_urlsafe(24),
        )

    def by_key(self) -> dict[str, str]:
        return {
            "proxmoxToken": self.proxmox,
            "proxmoxAdminToken": self.admin,
            "csiToken": self.csi,
            "gitToken": self.git,
        }


def program_environment(run: RunDirectory, stacks: Sequence[StackFile], credentials: Credentials) -> dict[str, str]:
    bundle = str(run.authority / "bundle.pem")
    return {
        **{name: os.environ[name] for name in KEPT if name in os.environ},
        **token_variables(stacks, credentials),
        "PATH": os.pathsep.join(search_directories(run)),
        "HOME": str(run.home),
        "TMPDIR": str(run.temporary),
        "LAB": run.name,
        "SSL_CERT_FILE": bundle,
        "GIT_SSL_CAINFO": bundle,
        "GIT_TERMINAL_PROMPT": "0",
        "NO_PROXY": "*",
        "PULUMI_HOME": str(run.pulumi_home),
        "PULUMI_BACKEND_URL": run.state.as_uri(),
        "PULUMI_CONFIG_PASSPHRASE_FILE": str(run.root / "passphrase"),
        "PULUMI_PYTHON_CMD": sys.executable,
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DEBUG_COMMANDS": "true",  # unlocks --event-log
    }


def token_variables(stacks: Sequence[StackFile], credentials: Credentials) -> dict[str, str]:
    """The variables each stack file reads its secrets from."""
    values = credentials.by_key()
    named = {name: values[key] for file in stacks for key, name in file.secrets.items()}
    return named | {environment_name(key): values[key] for file in stacks for key in file.sealed}


def search_directories(run: RunDirectory) -> list[str]:
    """The lab's own programs first, then those it takes from the system, from wherever the system has them."""
    found = (shutil.which(tool, path=f"{os.environ.get('PATH', '')}:{SYSTEM_PATH}") for tool in TOOLS)
    homes = [str(Path(path).parent) for path in found if path]
    return list(
        dict.fromkeys([str(run.root / "bin"), str(Path(sys.executable).parent), *homes, *SYSTEM_PATH.split(":")])
    )


def write(run: RunDirectory, environment: dict[str, str], credentials: Credentials) -> None:
    write_private(run.root / "passphrase", secrets.token_urlsafe(24))
    write_private(run.root / "credentials.json", json.dumps(credentials.by_key()))
    write_private(run.environment, json.dumps(environment, indent=2))


def read(run: RunDirectory) -> dict[str, str]:
    values: dict[str, str] = json.loads(run.environment.read_text(encoding="utf-8"))
    return values


def read_credentials(run: RunDirectory) -> Credentials:
    values = json.loads((run.root / "credentials.json").read_text(encoding="utf-8"))
    return Credentials(
        proxmox=values["proxmoxToken"],
        admin=values["proxmoxAdminToken"],
        csi=values["csiToken"],
        git=values["gitToken"],
    )
