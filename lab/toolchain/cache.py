"""The cache of programs: one directory per name and version, written whole or not at all."""

import asyncio
import fcntl
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

PATIENCE = 0.5


def default_root() -> Path:
    """The directory that the XDG rules give this project."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "groundwork" / "toolchain"


class Cache:
    """Directories `<root>/<name>/<version>`, each guarded by a lock while it is made."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def directory(self, name: str, version: str) -> Path:
        """Where that version is, or would be."""
        return self.root / name / version

    @asynccontextmanager
    async def lock(self, name: str, on_wait: Callable[[], None]) -> AsyncIterator[None]:
        """Hold the name alone; the lock goes with the process, however that ends."""
        (self.root / name).mkdir(parents=True, exist_ok=True)
        with (self.root / name / ".lock").open("a") as file:
            waited = False
            while not _locked(file.fileno()):
                if not waited:
                    on_wait()
                waited = True
                await asyncio.sleep(PATIENCE)
            yield

    @contextmanager
    def publish(self, name: str, version: str) -> Iterator[Path]:
        """A fresh directory that becomes `<name>/<version>` when the block ends well; to be used under the lock."""
        parent = self.root / name
        for leftover in parent.glob(".making-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        making = Path(tempfile.mkdtemp(prefix=".making-", dir=parent))
        try:
            yield making
            making.chmod(0o755)
            making.rename(parent / version)
        finally:
            shutil.rmtree(making, ignore_errors=True)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
