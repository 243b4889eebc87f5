"""Variables in manifests, as Flux fills them in after the build."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

VARIABLE = re.compile(r"\$\{(\w+)(?::?[-=]([^}]*))?\}")


def substitute(value: Any, values: Mapping[str, str]) -> Any:
    """Known variables and those with a default become text; the others stay as they are."""
    if isinstance(value, str):
        return VARIABLE.sub(lambda match: _one(match, values), value)
    if isinstance(value, Mapping):
        return {key: substitute(item, values) for key, item in value.items()}
    if isinstance(value, list):
        return [substitute(item, values) for item in value]
    return value


def unresolved(text: str) -> list[str]:
    return [name for name, _ in VARIABLE.findall(text)]


def _one(match: re.Match[str], values: Mapping[str, str]) -> str:
    name, default = match.groups()
    if name in values:
        return values[name]
    return match.group(0) if default is None else default
