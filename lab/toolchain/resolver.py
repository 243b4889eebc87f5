"""Finds the directory of a recipe: in the cache, else downloaded, else built."""

import hashlib
import json
import time
from collections.abc import Mapping
from pathlib import Path

import httpx

from lab.toolchain import go, official
from lab.toolchain.builder import HERE, Builder
from lab.toolchain.cache import Cache
from lab.toolchain.official import Download
from lab.toolchain.recipe import Recipe
from lab.toolchain.reporter import Reporter

RECORD = "origin.json"


class Resolver:
    """Makes each recipe's directory once, whoever asks."""

    def __init__(self, cache: Cache, reporter: Reporter, downloads: Mapping[tuple[str, str], Download]) -> None:
        self._cache = cache
        self._reporter = reporter
        self._downloads = downloads

    def cached(self, recipe: Recipe) -> Path | None:
        """The recipe's directory when it is there already."""
        directory = self._cache.directory(recipe.name, _version(recipe))
        return directory if (directory / RECORD).exists() else None

    async def directory(self, recipe: Recipe, left: int = 0) -> Path:
        """The recipe's directory; `left` is how many others wait."""
        if ready := self.cached(recipe):
            return ready
        waiting = f"another start is making {recipe.name}; waiting for it"
        async with self._cache.lock(recipe.name, lambda: self._reporter.begin(recipe.name, waiting, left)):
            return self.cached(recipe) or await self._make(recipe, left)

    async def _make(self, recipe: Recipe, left: int) -> Path:
        version, started = _version(recipe), time.monotonic()
        with self._cache.publish(recipe.name, version) as target:
            origin = "official" if await self._downloaded(recipe, target, left) else "built"
            if origin == "built":
                await self._built(recipe, target, left)
            seconds = round(time.monotonic() - started)
            (target / RECORD).write_text(json.dumps({"origin": origin, "seconds": seconds}))
        self._reporter.made(f"{recipe.name} {recipe.version}", f"{origin} in {seconds} s")
        return self._cache.directory(recipe.name, version)

    async def _downloaded(self, recipe: Recipe, target: Path, left: int) -> bool:
        download = self._downloads.get((recipe.name, recipe.version))
        if download is None:
            return False
        self._reporter.begin(recipe.name, f"downloading {download.url}", left)
        try:
            await official.fetch(download, target, lambda done, size: self._reporter.total(size or done))
        except httpx.HTTPError as error:
            self._reporter.begin(recipe.name, f"no download ({type(error).__name__}), building instead", left)
            return False
        return True

    async def _built(self, recipe: Recipe, target: Path, left: int) -> None:
        self._reporter.begin(recipe.name, "fetching modules", left)
        builder = Builder(go.find(self._cache.root), self._reporter, target.parent)
        await builder.make(recipe, target)


def origin(directory: Path) -> str:
    """How that directory of the cache was made."""
    return str(json.loads((directory / RECORD).read_text())["origin"])


def _version(recipe: Recipe) -> str:
    """The version, and a digest of everything that decides what is built."""
    digest = hashlib.sha256(official.machine().encode())
    digest.update(repr((recipe.builds, recipe.files, sorted(recipe.links.items()), recipe.afterwards)).encode())
    for build in recipe.builds:
        for file in sorted((HERE / build.wrapper).rglob("*")) if build.wrapper else ():
            if file.is_file():
                digest.update(file.name.encode() + file.read_bytes())
    return f"{recipe.version}-{digest.hexdigest()[:12]}"
