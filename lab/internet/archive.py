"""Archives that come out the same, byte for byte, for the same files."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path


def pack(files: Mapping[str, bytes]) -> bytes:
    """A .tar.gz of these files by path."""
    content = io.BytesIO()
    with gzip.GzipFile(fileobj=content, mode="wb", mtime=0) as zipped, tarfile.open(fileobj=zipped, mode="w") as tar:
        for path, data in sorted(files.items()):
            entry = tarfile.TarInfo(path)
            entry.size = len(data)
            entry.mode = 0o644
            tar.addfile(entry, io.BytesIO(data))
    return content.getvalue()


def read_tree(directory: Path, prefix: str) -> dict[str, bytes]:
    """Every file below the directory, its path under the prefix."""
    return {
        f"{prefix}/{file.relative_to(directory).as_posix()}": file.read_bytes()
        for file in sorted(directory.rglob("*"))
        if file.is_file()
    }
