"""The toolchain of one run: found outside, where there is a network, and used inside, where there is none."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from lab.internet.chart_source import chart_sources
from lab.internet.release_files import FLUX_OPERATOR, GATEWAY_API
from lab.narrator import Narrator
from lab.run_directory import LabError, RunDirectory
from lab.stackfile import StackFile
from lab.toolchain.errors import ToolchainError
from lab.toolchain.programs import Programs
from lab.toolchain.reporter import Bars

COMPANIONS = ("pulumi-language-python", "pulumi-language-python-exec", "pulumi-resource-pulumi-python")
"""What the engine looks for on the PATH; they lie beside it."""
MIB = 1024**2


class Toolbox:
    """Inside: programs and modules by name, as far as they have been brought in."""

    def __init__(self, run: RunDirectory) -> None:
        self._file = run.toolchain

    def path(self, name: str) -> Path:
        """LookupError while it is still being made."""
        return Path(self._read()["programs"][name])

    def module_directory(self, module: str, version: str | None = None) -> Path:
        versions = self._read()["modules"][module]
        return Path(versions[version] if version else next(iter(versions.values())))

    def _read(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self._file.read_text(encoding="utf-8"))
        return document


def gather(narrator: Narrator, *, first: bool) -> None:
    """Find or make the programs a rehearsal begins with, or all the others."""
    wanted = missing(first=first)
    bars = Bars(narrator.console, len(wanted))
    try:
        if wanted:
            with bars.progress:
                asyncio.run(Programs(reporter=bars).resolve_all(wanted))
    except ToolchainError as error:
        raise LabError(str(error)) from error


def missing(*, first: bool) -> list[str]:
    return [name for name in Programs().names(first=first) if not _there(name)]


def bring_in(run: RunDirectory, stacks: Iterable[StackFile]) -> None:
    """Everything that is there, where the world and the engine will look for it."""
    programs = Programs()
    paths = {name: programs.path(name) for name in programs.names() if _there(name)}
    folder = run.root / "bin"
    folder.mkdir(exist_ok=True)
    beside = {name: paths["pulumi"].parent / name for name in COMPANIONS}
    for name, path in {**paths, **beside}.items():
        if not (folder / name).is_symlink() and (name in beside or not name.startswith("pulumi-resource-")):
            (folder / name).symlink_to(path)
    programs.plugin_home(run.pulumi_home)
    document = {"programs": {name: str(path) for name, path in paths.items()}, "modules": _modules(programs, stacks)}
    unfinished = run.toolchain.with_suffix(".new")
    unfinished.write_text(json.dumps(document, indent=2), encoding="utf-8")
    unfinished.replace(run.toolchain)


def origins() -> list[dict[str, str]]:
    """Name, version, origin and size of every program and plugin."""
    return [
        {"name": item.name, "version": item.version, "origin": item.origin, "size": f"{item.size / MIB:.0f} MiB"}
        for item in Programs().inventory()
    ]


def _there(name: str) -> bool:
    try:
        return Programs().path(name).exists()
    except ToolchainError:
        return False


def _modules(programs: Programs, stacks: Iterable[StackFile]) -> dict[str, dict[str, str]]:
    """Module directories by module and version; one that cannot be had is missed only when it is asked for."""
    found: dict[str, dict[str, str]] = {}
    for module, version in dict.fromkeys(pair for file in stacks for pair in _wanted_modules(file)):
        try:
            found.setdefault(module, {})[version] = str(programs.module_directory(module, version))
        except LookupError:
            continue
    return found


def _wanted_modules(file: StackFile) -> Iterator[tuple[str, str]]:
    """Those whose charts and manifests the lab's internet will be asked for."""
    versions = {name: str(version) for name, version in file.cluster["versions"].items()}
    for source in chart_sources(versions):
        yield from ((source.module, version) for version in source.versions.values())
    for module, key in ((FLUX_OPERATOR, "flux_operator"), (GATEWAY_API, "gateway_api")):
        if key in versions:
            yield module, f"v{versions[key]}"
