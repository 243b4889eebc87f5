"""The project's stack files as they lie on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from .errors import Problem, stack_file
from .model import ClusterConfig
from .structure import parse

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The quick one where it was built."""


def cluster_data(directory: Path, stack: str, key: str) -> Any:
    """What a stack file says under the key; None when there is no such file or no such key."""
    path = directory / stack_file(stack)
    document = yaml.load(path.read_text(), Loader=LOADER) if path.exists() else None  # noqa: S506 - safe either way
    return ((document or {}).get("config") or {}).get(key)


def peers(directory: Path, own_stack: str, key: str) -> tuple[dict[str, ClusterConfig], list[Problem]]:
    """The other clusters by stack. A file without the key belongs to something else; an unreadable one is a problem."""
    clusters: dict[str, ClusterConfig] = {}
    problems: list[Problem] = []
    for stack in sorted(_stacks(directory) - {own_stack}):
        found = _peer(directory, stack, key)
        if isinstance(found, Problem):
            problems.append(found)
        elif found is not None:
            clusters[stack] = found
    return clusters, problems


def _stacks(directory: Path) -> set[str]:
    return {path.name.removeprefix("Pulumi.").removesuffix(".yaml") for path in directory.glob("Pulumi.*.yaml")}


def _peer(directory: Path, stack: str, key: str) -> ClusterConfig | Problem | None:
    try:
        data = cluster_data(directory, stack, key)
    except (yaml.YAMLError, AttributeError):
        return _unreadable(stack, "it is not a YAML mapping")
    if data is None:
        return None
    parsed = parse(data)
    return _unreadable(stack, str(parsed.problems[0].path)) if parsed.problems else parsed.cluster


def _unreadable(stack: str, why: str) -> Problem:
    return Problem(
        path=stack_file(stack),
        message=f"cannot be compared with this stack ({why})",
        fix=f"mend it first: pulumi preview -s {stack}",
    )
