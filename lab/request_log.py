"""One line per request that an emulator answered; the arbiter when it and a client disagree."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any


class RequestLog:
    """JSON lines, shared by all emulators of a run; bodies and credentials are never given to it."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._lock = Lock()

    def record(
        self, service: str, method: str, path: str, status: int | str, *, write: bool = False, **more: Any
    ) -> None:
        """`write` says whether the request changes something at the service."""
        entry = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "service": service,
            "method": method,
            "path": path,
            "status": status,
            "write": write,
            **more,
        }
        line = json.dumps(entry, default=str) + "\n"
        with self._lock, self.path.open("a", encoding="utf-8") as file:
            file.write(line)

    def entries(self) -> list[dict[str, Any]]:
        """Everything recorded so far."""
        if not self.path.exists():
            return []
        return [json.loads(line) for line in self.path.read_text(encoding="utf-8").splitlines()]
