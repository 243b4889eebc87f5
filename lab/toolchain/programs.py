"""The programs of the lab by name, wherever they come from."""

import asyncio
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lab.toolchain import go, official, resolver
from lab.toolchain.cache import Cache, default_root
from lab.toolchain.catalogue import RECIPES
from lab.toolchain.errors import ToolchainError
from lab.toolchain.modules import SUMS
from lab.toolchain.recipe import Program, Recipe
from lab.toolchain.reporter import Quiet, Reporter


@dataclass(frozen=True, kw_only=True)
class Item:
    """A line of the inventory."""

    name: str
    version: str
    origin: str
    size: int


@dataclass(frozen=True, kw_only=True)
class _Found:
    path: Path
    origin: str


class Programs:
    """Finds programs, and keeps where they were found."""

    def __init__(
        self,
        *,
        root: Path | None = None,
        reporter: Reporter | None = None,
        recipes: tuple[Recipe, ...] = RECIPES,
        table: Path = official.TABLE,
    ) -> None:
        self._root = root or default_root()
        self._reporter = reporter or Quiet()
        self._resolver = resolver.Resolver(Cache(self._root), self._reporter, official.downloads(table))
        self._recipes = recipes
        self._programs = {program.name: (program, recipe) for recipe in recipes for program in recipe.programs}
        self._found: dict[str, _Found] = {}

    def names(self, *, first: bool | None = None) -> list[str]:
        """All programs; those that a rehearsal cannot start without; or the others."""
        return [name for name, (_, recipe) in self._programs.items() if first in (None, recipe.first)]

    async def resolve(self, name: str, *, left: int = 0) -> Path:
        """Find, download or build a program."""
        if name not in self._found:
            self._found[name] = await self._search(name, left)
            self._reporter.finish()
        return self._found[name].path

    async def resolve_all(self, names: Iterable[str]) -> None:
        """Resolve one after the other; Go itself uses all cores."""
        recipes = {name: self._known(name)[1].name for name in names}
        for name, recipe in recipes.items():
            rest = list(recipes.values())
            await self.resolve(name, left=len(set(rest[rest.index(recipe) :]) - {recipe}))

    def path(self, name: str) -> Path:
        """Where a program is that was resolved, or is there anyway."""
        program, recipe = self._known(name)
        found = self._present(program, recipe)
        if found is None:
            raise ToolchainError(f"{name} is not there yet. Way out: python -m lab.toolchain build {name}")
        return found.path

    def module_directory(self, module: str, version: str) -> Path:
        """The files of a Go module; LookupError where it cannot be had."""
        try:
            return go.download(go.find(self._root), module, version, SUMS.get((module, version)))
        except ToolchainError as error:
            raise LookupError(str(error)) from error

    def plugin_home(self, directory: Path) -> Path:
        """Lay out the resolved plugins below a Pulumi home, as the engine looks for them."""
        for name, (program, _) in self._programs.items():
            if program.plugin:
                place = directory / "plugins" / f"resource-{program.plugin}-v{program.version}"
                place.mkdir(parents=True, exist_ok=True)
                (place / name).unlink(missing_ok=True)
                (place / name).symlink_to(self.path(name))
        return directory

    def inventory(self) -> list[Item]:
        """Each program with its origin and size; one that is not there yet says so."""
        return [item for recipe in self._recipes for item in self._items(recipe)]

    def _items(self, recipe: Recipe) -> Iterator[Item]:
        directory = self._resolver.cached(recipe)
        for program in recipe.programs:
            yield _item(program, self._present(program, recipe))
        for companion in recipe.companions:
            yield _item(companion, _in_cache(companion, directory) if directory else None)

    def _present(self, program: Program, recipe: Recipe) -> _Found | None:
        """A program that is there without any work."""
        if program.name in self._found:
            return self._found[program.name]
        if on_path := on_path_in_version(program, os.environ.get("PATH", "")):
            return _Found(path=on_path, origin="path")
        directory = self._resolver.cached(recipe)
        return _in_cache(program, directory) if directory else None

    def _known(self, name: str) -> tuple[Program, Recipe]:
        if name not in self._programs:
            raise ToolchainError(f"No program is called {name}; there are: {', '.join(sorted(self._programs))}")
        return self._programs[name]

    async def _search(self, name: str, left: int) -> _Found:
        program, recipe = self._known(name)
        present = await asyncio.to_thread(self._present, program, recipe)
        return present or _in_cache(program, await self._resolver.directory(recipe, left))


@cache
def on_path_in_version(program: Program, search: str) -> Path | None:
    """A program on that PATH which says itself that it has the pinned version."""
    found = shutil.which(program.name, path=search) if program.ask else None
    if found is None:
        return None
    command = [found, *program.ask]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    pinned = rf"(?<![\d.])v?{re.escape(program.version)}(?![\d.])"
    return Path(found) if re.search(pinned, answer.stdout + answer.stderr) else None


def _in_cache(program: Program, directory: Path) -> _Found:
    how = resolver.origin(directory)
    return _Found(path=directory / program.name, origin=how if how == "official" else program.origin)


def _item(program: Program, found: _Found | None) -> Item:
    origin, size = (found.origin, found.path.stat().st_size) if found else ("not there yet", 0)
    return Item(name=program.name, version=program.version, origin=origin, size=size)
