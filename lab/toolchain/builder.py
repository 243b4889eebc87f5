"""Makes what a recipe says from Go modules, in a directory of its own."""

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from lab.toolchain import go
from lab.toolchain.errors import BUILD_FAILED, NO_SPACE, UNAVAILABLE, ToolchainError
from lab.toolchain.recipe import Build, Copy, Recipe
from lab.toolchain.reporter import Reporter

HERE = Path(__file__).parent
GIB = 1024**3


class Builder:
    """Builds recipes with one Go command."""

    def __init__(self, command: Path, reporter: Reporter, logs: Path) -> None:
        self._go = command
        self._reporter = reporter
        self._logs = logs

    async def make(self, recipe: Recipe, target: Path) -> None:
        """Fill the target with the recipe's programs."""
        _refuse_without_space(recipe, target)
        for build in recipe.builds:
            with tempfile.TemporaryDirectory(prefix=".making-build-", dir=self._logs) as directory:
                await self._build(recipe, build, Path(directory), target)
        for file in recipe.files:
            source = await asyncio.to_thread(go.download, self._go, file.module, file.version, file.sum)
            _install(source / file.path, target / Path(file.path).name)
        for name, output in recipe.links.items():
            (target / name).symlink_to(output)
        for command in recipe.afterwards:
            await self._checked(recipe, [str(target / command[0]), *command[1:]], target, {})

    async def _build(self, recipe: Recipe, build: Build, directory: Path, target: Path) -> None:
        for copy in build.copies:
            source = await asyncio.to_thread(go.download, self._go, copy.module, copy.version, copy.sum)
            place(copy, source, directory)
        if build.wrapper:
            shutil.copytree(HERE / build.wrapper, directory, dirs_exist_ok=True)
        if build.sums:
            with (directory / "go.sum").open("a") as sums:
                sums.write(build.sums)
        if build.generate:
            await self._checked(recipe, [str(self._go), *build.generate], directory, build.environment)
        await self._compile(recipe, build, directory, target)

    async def _compile(self, recipe: Recipe, build: Build, directory: Path, target: Path) -> None:
        flags = ["-trimpath", *(["-tags", ",".join(build.tags)] if build.tags else [])]
        stale = [str(self._go), "list", "-deps", *flags, "-f", "{{.StaleReason}}", build.package]
        self._reporter.total(len(await self._checked(recipe, stale, directory, build.environment)))
        symbols = "".join(f" -X {name}={value}" for name, value in sorted(build.symbols.items()))
        command = [str(self._go), "build", "-v", *flags, "-ldflags", f"-s -w{symbols}"]
        command += ["-o", str(target / build.output), build.package]
        await self._checked(recipe, command, directory, build.environment, self._reporter.step)

    async def _checked(
        self,
        recipe: Recipe,
        command: list[str],
        directory: Path,
        extra: Mapping[str, str],
        on_line: Callable[[str], None] = lambda _: None,
    ) -> list[str]:
        code, lines = await go.run(command, directory, extra, on_line)
        if code == 0:
            return [line for line in lines if line and not line.startswith("go: downloading")]
        raise self._failure(recipe, command, lines)

    def _failure(self, recipe: Recipe, command: list[str], lines: list[str]) -> ToolchainError:
        log = self._logs / f"{recipe.name}.log"
        log.write_text(" ".join(command) + "\n" + "\n".join(lines) + "\n")
        reason = "\n".join(lines[-15:])
        if "no space left on device" in reason:
            return ToolchainError(_space(recipe, self._logs))
        if go.ABSENT.search(reason):
            return ToolchainError(UNAVAILABLE.format(name=recipe.name, version=recipe.version, reason=reason))
        return ToolchainError(BUILD_FAILED.format(name=recipe.name, version=recipe.version, reason=reason, log=log))


def place(copy: Copy, source: Path, directory: Path) -> None:
    """Put a changed copy of a module into the build directory."""
    target = directory / copy.target
    shutil.copytree(source, target, dirs_exist_ok=True, copy_function=shutil.copyfile)
    for path in (target, *target.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    for patch in copy.patches:
        file = target / patch.file
        text = file.read_text()
        if text.count(patch.old) != 1:
            raise ToolchainError(
                f"{copy.module} {copy.version}: {patch.file} does not hold {patch.old!r} exactly once."
            )
        file.write_text(text.replace(patch.old, patch.new))
    for name, text in copy.added.items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text(text)


def _install(source: Path, target: Path) -> None:
    shutil.copyfile(source, target)
    target.chmod(0o755)


def _refuse_without_space(recipe: Recipe, where: Path) -> None:
    if shutil.disk_usage(where).free < recipe.space * GIB:
        raise ToolchainError(_space(recipe, where))


def _space(recipe: Recipe, where: Path) -> str:
    free = shutil.disk_usage(where).free / GIB
    return NO_SPACE.format(name=recipe.name, free=free, where=where, needed=recipe.space)
