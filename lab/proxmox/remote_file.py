"""A file somewhere on the internet, as far as a hypervisor needs to know it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from lab.boot import Image

DISK_FORMATS = ("qcow2", "raw", "vmdk", "ova")
SMALLEST_DISK = 1306 << 20  # what a Talos disk image is unpacked to; only the transfer size is known here


@dataclass(frozen=True, kw_only=True)
class RemoteFile:
    url: str
    size: int
    mimetype: str

    @property
    def filename(self) -> str:
        return PurePosixPath(urlsplit(self.url).path).name

    @property
    def format(self) -> str | None:
        """The disk format of its bytes; None when they are something else, such as compressed."""
        suffix = PurePosixPath(self.filename).suffix.removeprefix(".")
        return suffix if suffix in DISK_FORMATS else None


Fetch = Callable[[str], Awaitable[RemoteFile]]
"""Looks a URL up; raises LookupError when there is nothing."""


def disk_size(image: Image | None, fallback: int) -> int:
    """What the guest sees of a disk imported from such an image."""
    return fallback if image is None else max(image.size, SMALLEST_DISK)
