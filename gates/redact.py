"""Keeps credentials out of everything a gate says or writes."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

HIDDEN = "[hidden]"
SECRET_KEYS = frozenset({"token", "key", "client-key-data", "password", "certificate", "client-certificate-data"})
SHORTEST = 6
"""Shorter values would tear holes into ordinary words."""

_PATTERNS = (
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----", re.DOTALL),
    re.compile(r"(?<=PVEAPIToken=)\S+"),
    re.compile(r"(?i)(?<=bearer )[\w.~+/=-]+"),
    re.compile(r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"),
)


class Redactor:
    """Hides the secrets of one target, and whatever looks like one."""

    def __init__(self, target: Mapping[str, Any]) -> None:
        found = {form for value in _secrets(target) for form in _forms(value) if len(form) >= SHORTEST}
        self._values = sorted(found, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        for value in self._values:
            text = text.replace(value, HIDDEN)
        for pattern in _PATTERNS:
            text = pattern.sub(HIDDEN, text)
        return text


def _secrets(value: Any, name: str = "") -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _secrets(inner, str(key))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _secrets(inner, name)
    elif isinstance(value, str) and name == "kubeconfig":
        yield from _secrets(_yaml(value), "")
    elif isinstance(value, str) and name in SECRET_KEYS:
        yield value


def _yaml(text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return None


def _forms(value: str) -> Iterator[str]:
    """A secret as it was given, as base64 carries it, and the part of an API token behind its name."""
    yield value
    yield base64.b64encode(value.encode()).decode()
    if "=" in value.rstrip("="):
        yield value.rpartition("=")[2]
    try:
        yield base64.b64decode(value, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return
