"""The engine's events, taken from it through a pipe: its debug messages hold secrets and never reach the disk."""

from __future__ import annotations

import json
import os
import select
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

CHUNK = 1 << 20


class EventTap:
    """As a context: `pipe` is what the engine writes to, `kept` the log of everything but debug messages."""

    def __init__(self, pipe: Path, kept: Path) -> None:
        self.pipe = pipe
        self._kept = kept
        self._rest = b""
        self._begun = False

    def __enter__(self) -> EventTap:
        self.pipe.unlink(missing_ok=True)
        os.mkfifo(self.pipe, 0o600)
        self._source = os.open(self.pipe, os.O_RDONLY | os.O_NONBLOCK)
        self._log = self._kept.open("wb", buffering=0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._log.close()
        os.close(self._source)
        self.pipe.unlink(missing_ok=True)

    def events(self, patience: float) -> Iterator[dict[str, Any]]:
        """What has come in, waiting at most so long for the first of it."""
        if not self._begun:
            time.sleep(patience)  # a pipe that nobody has opened yet counts as readable
        select.select([self._source], [], [], patience)
        arrived = self._read()
        self._begun = bool(arrived)
        *lines, self._rest = (self._rest + arrived).split(b"\n")
        for line in filter(None, lines):
            event: dict[str, Any] = json.loads(line)
            if not _is_debug(event):
                self._log.write(line + b"\n")
                yield event

    def _read(self) -> bytes:
        try:
            return os.read(self._source, CHUNK)
        except BlockingIOError:
            return b""


def _is_debug(event: Mapping[str, Any]) -> bool:
    return bool(event.get("diagnosticEvent", {}).get("severity") == "debug")
