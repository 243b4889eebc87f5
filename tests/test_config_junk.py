"""Whatever stands wherever in a stack file, the answer is a list of problems and never a traceback."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from config import rules, structure
from config.leaks import leaks
from tests import config_stacks as stacks

JUNK: list[Any] = [None, [], [None], -1, {"x": {"y": [1]}}]

WIDE: stacks.Patch = {
    "cluster.charts": [{"name": "a", "chart": "oci://b", "version": "1.2.3", "namespace": "c", "values": {"d": 1}}],
    "cluster.crds": [{"url": "https://h.example/v1.2.3/crds.yaml", "names": ["a"]}],
    "cluster.deadlines": {"G4": 100},
    "cluster.timeouts": {"attempt": 9},
    "cluster.rollout": {"nodes": ["infra-w-1"]},
    "cluster.talos.patches": {"all": [{"machine": {"network": {"interfaces": [{"dhcp": False}]}}}]},
    "cluster.cilium.values": {"bpf": {"masquerade": True}},
}


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield from places(value, (*path, key))


def replaced(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    root = {"cluster": copy.deepcopy(data)}
    target: Any = root
    *parents, last = ("cluster", *path)
    for part in parents:
        target = target[part]
    target[last] = value
    return root["cluster"]


@pytest.mark.parametrize("junk", JUNK, ids=repr)
def test_junk_anywhere(junk: Any) -> None:
    cluster = stacks.patched(stacks.committed("infra"), WIDE)["cluster"]
    peers = {"apps": structure.parse(stacks.committed("apps")["cluster"]).cluster}
    for path in places(cluster):
        if path[:1] == ("nodes",) and path[1:2] not in ((), ("infra-cp-1",)):
            continue  # one node is like another
        data = replaced(cluster, path, junk)
        parsed = structure.parse(data)
        for problem in [*leaks(data), *parsed.problems, *rules.check(parsed, peers)]:
            assert problem.path.startswith("cluster")
            assert problem.fix
