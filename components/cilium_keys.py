"""Makes the committed list of a Cilium chart's keys: `python -m components.cilium_keys <chart directory>`.

A key is what values.yaml sets, and what a template reads and values.yaml shows in a comment only. A star stands for
anything below: maps handed on as they are (labels, affinity), lists, and what has no default to tell its shape.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from config.chart_keys import ANYTHING, KeyPath, list_file

REFERENCE = re.compile(r"\.Values((?:\.\w+)+)")
HANDED_ON = re.compile(
    r"toYaml \(?\.Values((?:\.\w+)+)"
    r"|\.Values((?:\.\w+)+)[^{}]*\| toYaml"
    r"|with \.Values((?:\.\w+)+) -?\}\}[^{]*\{\{-? toYaml \. "
)
COMMENTED = re.compile(r"^ *# (\w+):", re.MULTILINE)
DOCUMENTED = re.compile(r"^( *)# -- .*\n\1# (\w+): (?!http)\S*$", re.MULTILINE)
REFUSING = "validate.yaml"
"""Reads keys only to say that they are gone."""


def keys(chart: Path) -> list[str]:
    """Dotted paths in order."""
    text = (chart / "values.yaml").read_text(encoding="utf-8")
    templates = [file.read_text(encoding="utf-8") for file in template_files(chart)]
    handed_on = {path for template in templates for path in references(HANDED_ON, template)}
    listed = set(defaults(yaml.safe_load(text), (), handed_on)) | set(documented(text))
    known = {path[:-1] if path[-1] == ANYTHING else path for path in listed}
    commented = set(COMMENTED.findall(text))
    read = {path for template in templates for path in references(REFERENCE, template)}
    listed |= {(*path, ANYTHING) for path in read - known if path[-1] in commented and path[:-1] in known | {()}}
    return sorted(".".join(path) for path in listed if not _covered(path, listed))


def _covered(path: KeyPath, listed: set[KeyPath]) -> bool:
    return any((*path[:length], ANYTHING) in listed - {path} for length in range(1, len(path)))


def template_files(chart: Path) -> Iterator[Path]:
    return (file for file in sorted((chart / "templates").rglob("*")) if file.is_file() and file.name != REFUSING)


def references(pattern: re.Pattern[str], template: str) -> Iterator[KeyPath]:
    for found in pattern.finditer(template):
        dotted = next(group for group in found.groups() if group)
        yield tuple(dotted.split(".")[1:])


def defaults(values: Mapping[str, Any], above: KeyPath, handed_on: set[KeyPath]) -> Iterator[KeyPath]:
    for key, value in values.items():
        path = (*above, key)
        if path in handed_on or value is None or value == {} or isinstance(value, list):
            yield (*path, ANYTHING)
            continue
        yield path
        if isinstance(value, dict):
            yield from defaults(value, path, handed_on)


def documented(text: str) -> Iterator[KeyPath]:
    """Keys that are described and commented out; they belong to the map they stand in."""
    for found in DOCUMENTED.finditer(text):
        yield (*_above(text[: found.start()], len(found[1])), found[2])


def _above(before: str, indent: int) -> KeyPath:
    path: list[str] = []
    for line in reversed(before.splitlines()):
        match = re.match(r"( *)([\w.-]+):", line)
        if match and len(match[1]) < indent:
            path.insert(0, match[2])
            indent = len(match[1])
    return tuple(path)


def main(chart: Path) -> None:
    version = yaml.safe_load((chart / "Chart.yaml").read_text(encoding="utf-8"))["version"]
    list_file(version).write_text("\n".join(keys(chart)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
