"""The tree Flux reads keeps to the timeouts the stack files are checked against."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from config import Timeouts
from tests import config_stacks as stacks

SECONDS = {"h": 3600, "m": 60, "s": 1}
LIMITS = {"HelmRelease": Timeouts().helm_release, "Kustomization": Timeouts().kustomization}


def seconds(duration: str) -> int:
    return sum(int(number) * SECONDS[unit] for number, unit in re.findall(r"(\d+)([hms])", duration))


def objects() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted((stacks.PROJECT / "gitops").rglob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            if document and document.get("kind") in LIMITS and "toolkit.fluxcd.io" in document["apiVersion"]:
                yield str(path.relative_to(stacks.PROJECT)), document


@pytest.mark.parametrize(("path", "document"), [pytest.param(*found, id=found[0]) for found in objects()])
def test_timeouts_are_within_the_checked_ones(path: str, document: dict[str, Any]) -> None:
    assert 0 < seconds(document["spec"]["timeout"]) <= LIMITS[document["kind"]], path
