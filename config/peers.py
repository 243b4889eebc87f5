"""The project's other stack files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from .errors import Problem
from .model import ClusterConfig
from .structure import parse

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The quick one where it was built."""


def read(directory: Path, own_stack: str, key: str) -> tuple[dict[str, ClusterConfig], list[Problem]]:
    """Clusters by stack. A file without the key belongs to something else; an unreadable one is a problem."""
    clusters: dict[str, ClusterConfig] = {}
    problems: list[Problem] = []
    for stack, path in _files(directory):
        if stack == own_stack:
            continue
        found = _cluster(path, key)
        if isinstance(found, Problem):
            problems.append(found)
        elif found is not None:
            clusters[stack] = found
    return clusters, problems


def _files(directory: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(directory.glob("Pulumi.*.yaml")):
        yield path.name.removeprefix("Pulumi.").removesuffix(".yaml"), path


def _cluster(path: Path, key: str) -> ClusterConfig | Problem | None:
    try:
        document: Any = yaml.load(path.read_text(), Loader=LOADER)  # noqa: S506 - a safe loader either way
    except yaml.YAMLError:
        return _unreadable(path, "is not YAML")
    data = ((document or {}).get("config") or {}).get(key)
    if data is None:
        return None
    parsed = parse(data)
    return (
        _unreadable(path, parsed.problems[0].path + ": " + parsed.problems[0].message)
        if parsed.problems
        else parsed.cluster
    )


def _unreadable(path: Path, why: str) -> Problem:
    stack = path.name.split(".")[1]
    return Problem(
        path=path.name,
        message=f"cannot be compared with this stack ({why})",
        fix=f"mend it first: pulumi preview -s {stack}",
    )
