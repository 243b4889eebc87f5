"""What must not stand inside `cluster:`: secrets, which would reach the state in clear, and device paths."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Any

from .errors import Problem
from .structure import Location, path_of

SECRET_KEY = re.compile(r"(token|password|passwd|passphrase|apikey|(private|secret|access)key|(client|shared)secret)$")
SECRET_OR_ITS_NAME = re.compile(r"secret$")
OBJECT_NAME = re.compile(r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$")
SECRET_VALUE = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----|AGE-SECRET-KEY-1|^\S+@\S+!\S+=[0-9a-fA-F-]{36}$"
    r"|\b(ghp|gho|ghs|glpat|github_pat)[_-]\w{16,}|^[a-z]+://[^/\s:@]+:[^/\s@]+@"
)
DEVICE = re.compile(r"(^|[\s=:,])/dev/\w")
OUTSIDE = "move it beside cluster: `pulumi config set --secret KEY`, or KEY: env:NAME; then revoke the one written here"


def leaks(data: Any, location: Location = ()) -> Iterator[Problem]:
    """One problem per place; the value itself is never repeated."""
    if isinstance(data, dict):
        if set(data) == {"secure"}:
            yield _secret(location, "an encrypted value inside cluster is decrypted into the state in clear")
            return
        for key, value in data.items():
            yield from _entry(str(key), value, location)
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from leaks(value, [*location, index])
    elif isinstance(data, str):
        yield from _text(data, location)


def _entry(key: str, value: Any, location: Location) -> Iterator[Problem]:
    plain = re.sub(r"[^a-z]", "", key.lower())
    named = SECRET_KEY.search(plain) and not plain.startswith("existing")
    if isinstance(value, str) and value and (named or _not_a_reference(plain, value)):
        yield _secret([*location, key], "a secret inside cluster reaches the state in clear")
    else:
        yield from leaks(value, [*location, key])


def _not_a_reference(key: str, value: str) -> bool:
    """Charts and manifests refer to Secret objects by name under keys such as pullSecret."""
    return bool(SECRET_OR_ITS_NAME.search(key)) and not OBJECT_NAME.match(value)


def _text(value: str, location: Location) -> Iterator[Problem]:
    if SECRET_VALUE.search(value) or SECRET_VALUE.search(_decoded(value)):
        yield _secret(location, "holds what looks like a secret, which would reach the state in clear")
    elif value.startswith("env:"):
        yield _secret(location, "env: is read only for the secrets beside cluster")
    elif DEVICE.search(value):
        yield Problem(
            path=path_of(location),
            message="names a device; device names change between boots and machines",
            fix="tell disks apart by size, or use a Talos volume selector",
        )


def _decoded(value: str) -> str:
    """Talos and Kubernetes carry keys as base64."""
    try:
        return base64.b64decode(value, validate=True).decode(errors="ignore")
    except (binascii.Error, ValueError):
        return ""


def _secret(location: Location, message: str) -> Problem:
    return Problem(path=path_of(location), message=message, fix=OUTSIDE)
