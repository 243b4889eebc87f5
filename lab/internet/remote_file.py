"""What a hypervisor learns about a file before it downloads it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class RemoteFile:
    url: str
    size: int
    mimetype: str
