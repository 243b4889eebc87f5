"""The vendors' own downloads, each checked against a SHA-256 that is pinned in a table beside this file."""

import asyncio
import hashlib
import json
import platform
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx

from lab.toolchain.errors import ToolchainError

TABLE = Path(__file__).parent / "official.json"
CHUNK = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Download:
    """A file of a vendor; `members` maps the programs to their paths in it (no archive: one program, any path)."""

    url: str
    sha256: str
    members: Mapping[str, str]


def machine() -> str:
    """This machine as vendors write it."""
    names = {"x86_64": "amd64", "aarch64": "arm64"}
    return f"{platform.system().lower()}-{names.get(platform.machine(), platform.machine())}"


def downloads(table: Path) -> dict[tuple[str, str], Download]:
    """By recipe and version, what can be downloaded for this machine."""
    entries = json.loads(table.read_text())
    return {
        (entry["recipe"], entry["version"]): Download(
            url=entry["url"], sha256=entry["sha256"], members=entry["members"]
        )
        for entry in entries
        if entry["machine"] == machine()
    }


async def fetch(download: Download, target: Path, on_part: Callable[[int, int], None]) -> None:
    """Put the programs of a download into the target; what has another sum is not even opened."""
    file = target / Path(download.url).name
    digest = hashlib.sha256()
    async with (
        httpx.AsyncClient(follow_redirects=True, timeout=60) as client,
        client.stream("GET", download.url) as response,
    ):
        response.raise_for_status()
        size = int(response.headers.get("content-length", 0))
        with file.open("wb") as sink:
            async for part in response.aiter_bytes(CHUNK):
                digest.update(part)
                sink.write(part)
                on_part(sink.tell(), size)
    if digest.hexdigest() != download.sha256:
        file.unlink()
        raise ToolchainError(f"{download.url} has the SHA-256 {digest.hexdigest()}, and {download.sha256} is pinned.")
    await asyncio.to_thread(_unpack, file, download, target)


def _unpack(file: Path, download: Download, target: Path) -> None:
    if not tarfile.is_tarfile(file):
        file.chmod(0o755)
        file.rename(target / next(iter(download.members)))
        return
    with tarfile.open(file) as archive:
        for program, path in download.members.items():
            member = archive.extractfile(path)
            if member is None:
                raise ToolchainError(f"{download.url} holds no file {path}.")
            (target / program).write_bytes(member.read())
            (target / program).chmod(0o755)
    file.unlink()
