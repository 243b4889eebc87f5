"""The bundle a failed gate leaves behind: redacted, readable by its owner only, outside of Git."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

DIRECTORY = Path(".diagnostics")


def write(*, gate: str, message: str, extra: dict[str, Any], redact: Callable[[str], str]) -> str | None:
    """Write the bundle; its path, or None when this directory cannot be written to."""
    now = datetime.now(UTC)
    path = DIRECTORY / f"{gate}-{now:%Y%m%dT%H%M%S%f}.txt"
    try:
        DIRECTORY.mkdir(mode=0o700, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError:
        return None
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(redact(_text(now, message, extra)))
    return str(path)


def _text(now: datetime, message: str, extra: dict[str, Any]) -> str:
    sections = [f"written {now.isoformat()}", message]
    sections += [f"== {name}\n{json.dumps(value, indent=2, default=str)}" for name, value in extra.items()]
    return "\n\n".join(sections) + "\n"
