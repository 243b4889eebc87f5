"""Preview one committed stack on any clone: an empty state, tokens that open nothing, and the lab's own engine."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))

from lab.toolchain.programs import Programs  # noqa: E402 - the script's own folder comes first on the path

PROGRAMS = ["pulumi", *(f"pulumi-resource-{name}" for name in ("kubernetes", "proxmoxve", "talos", "tls", "command"))]
VENV = ".venv"
REFERENCE = re.compile(r"env:([A-Z][A-Z0-9_]*)")
NO_TOKEN = "preview@pve!none=00000000-0000-0000-0000-000000000000"  # noqa: S105 - of the right shape, and of no use


def environment(stack: str, home: Path, engine: Path) -> dict[str, str]:
    named = REFERENCE.findall((PROJECT / f"Pulumi.{stack}.yaml").read_text())
    return {
        **os.environ,
        **dict.fromkeys(named, NO_TOKEN),
        "PATH": f"{engine.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "PULUMI_HOME": str(home / "home"),
        "PULUMI_BACKEND_URL": (home / "state").as_uri(),
        "PULUMI_CONFIG_PASSPHRASE": "none",
        "PULUMI_PYTHON_CMD": sys.executable,
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
    }


def stand_in(home: Path) -> Path:
    """The project by links, its stack files by copies: the engine writes its salt into the stack file."""
    project = home / "project"
    project.mkdir()
    for path in PROJECT.iterdir():
        if path.name.startswith("Pulumi."):
            shutil.copy(path, project)
        elif path.name == VENV or not path.name.startswith("."):
            (project / path.name).symlink_to(path)
    return project


def preview(stack: str, home: Path) -> int:
    programs = Programs()
    asyncio.run(programs.resolve_all(PROGRAMS))
    (home / "state").mkdir()
    programs.plugin_home(home / "home")
    project, variables = stand_in(home), environment(stack, home, programs.path("pulumi"))
    for command in (["stack", "init", stack], ["preview", "--stack", stack]):
        done = subprocess.run(["pulumi", *command, "--non-interactive"], cwd=project, env=variables, check=False)
        if done.returncode != 0:
            return done.returncode
    return 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        sys.exit(preview(sys.argv[1], Path(directory)))
