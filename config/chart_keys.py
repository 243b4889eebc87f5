"""The keys of Cilium's chart: Helm takes any key without a word, and a misspelt one does nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from .errors import Problem
from .model import ClusterConfig

LISTS = Path(__file__).resolve().parent.parent / "schema"
ANYTHING = "*"
"""Below it the chart passes on what it is given."""

KeyPath = tuple[str, ...]


@dataclass(frozen=True)
class ChartKeys:
    known: frozenset[KeyPath]

    def dead(self, values: Mapping[str, Any], above: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
        """The first unknown key on each path of the values, and what may have been meant."""
        for key, value in values.items():
            path = (*above, str(key))
            if (*path, ANYTHING) in self.known:
                continue
            if path not in self.known:
                yield path, self._meant(path, value)
            elif isinstance(value, Mapping):
                yield from self.dead(value, path)

    def _meant(self, path: KeyPath, value: Any) -> str:
        """What is below it may stand elsewhere; else the key beside it that is nearest; else one of that name."""
        known = [each[:-1] if each[-1] == ANYTHING else each for each in self.known]
        below = value if isinstance(value, Mapping) else {}
        moved = [each for each in known if each[-1] in below]
        beside = get_close_matches(path[-1], [each[-1] for each in known if each[:-1] == path[:-1]], n=1)
        namesakes = [each for each in known if each[-1] == path[-1]]
        if len(moved) == 1:
            return f"did you mean {_dotted(moved[0])}?"
        if beside:
            return f"did you mean {_dotted((*path[:-1], beside[0]))}?"
        if len(namesakes) == 1:
            return f"did you mean {_dotted(namesakes[0])}?"
        return "remove it; the chart reads no such key"


def _dotted(path: KeyPath) -> str:
    return ".".join(path)


def list_file(version: str) -> Path:
    return LISTS / f"cilium-{version}.keys.txt"


@cache
def chart_keys(version: str) -> ChartKeys | None:
    """None for a version whose list nobody has made yet."""
    file = list_file(version)
    if not file.exists():
        return None
    return ChartKeys(frozenset(tuple(line.split(".")) for line in file.read_text(encoding="utf-8").split()))


def dead_keys(version: str, values: Mapping[str, Any], where: str) -> Iterator[Problem]:
    keys = chart_keys(version)
    if keys is None:
        return
    for path, fix in keys.dead(values):
        message = f"no such key in the chart of Cilium {version}, so it would do nothing"
        yield Problem(path=f"{where}.{_dotted(path)}", message=message, fix=fix)


def values_are_keys_of_the_chart(cluster: ClusterConfig) -> Iterable[Problem]:
    version = cluster.versions.cilium
    if chart_keys(version) is None:
        yield Problem(
            path="cluster.versions.cilium",
            message=f"keys of cilium.values cannot be checked: there is no {list_file(version).name}",
            fix="make it: python -m components.cilium_keys <directory of that chart>",
            warning=True,
        )
    yield from dead_keys(version, cluster.cilium.values, "cluster.cilium.values")
