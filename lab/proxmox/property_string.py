"""Proxmox's option strings, such as `local-lvm:vm-100-disk-0,iothread=1,size=20G`, and its sizes."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lab.proxmox.errors import OperationError, ParameterError

_SIZE = re.compile(r"^(\d+(?:\.\d+)?)([KMGT]?)$")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def parse(text: str, default_key: str, option: str) -> dict[str, str]:
    """Key → value; a part without a key belongs to the default key; empty parts are skipped."""
    found: dict[str, str] = {}
    for part in filter(str.strip, text.split(",")):
        key, separator, value = part.partition("=")
        key, value = (key, value) if separator else (default_key, key)
        if not value:
            raise _format_error(option, "missing key in comma-separated list property")
        if key in found:
            raise _format_error(option, f"duplicate key in comma-separated list property: {key}")
        found[key] = value
    return found


def render(values: Mapping[str, str], first: str) -> str:
    """The first key's value alone, the rest by name."""
    rest = (f"{key}={values[key]}" for key in sorted(values) if key != first)
    return ",".join([values[first], *rest])


def size(text: str) -> int:
    """Bytes of `20G`, `512M` or a plain number."""
    matched = _SIZE.match(text)
    if not matched:
        raise OperationError(f"invalid size '{text}'")
    return int(float(matched[1]) * _UNITS[matched[2]])


def render_size(count: int) -> str:
    """With the largest unit that divides it."""
    unit = next((name for name in "TGMK" if count and count % _UNITS[name] == 0), "")
    return f"{count // _UNITS[unit]}{unit}"


def boolean(text: str) -> bool | None:
    """What Proxmox takes for true and false; None for anything else."""
    return {
        "1": True,
        "on": True,
        "yes": True,
        "true": True,
        "0": False,
        "off": False,
        "no": False,
        "false": False,
    }.get(text.lower())


def _format_error(option: str, message: str) -> ParameterError:
    return ParameterError.named({option: f"invalid format - {message}"})
