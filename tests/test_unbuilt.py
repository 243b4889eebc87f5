"""What is not built yet is refused before anything is registered."""

from __future__ import annotations

from typing import Any

import pulumi
import pytest

from components.unbuilt import refuse_unbuilt
from tests.stackfiles import cluster

ASKED = {
    "cluster.mesh.enabled": {"mesh": {"enabled": True}},
    "cluster.cilium.owner": {"cilium": {"owner": "flux"}},
    "cluster.recovery.auto": {"recovery": {"auto": True}},
}


@pytest.mark.parametrize(("path", "change"), ASKED.items(), ids=list(ASKED))
def test_what_cannot_be_done_yet_is_refused_by_its_path(path: str, change: dict[str, Any]) -> None:
    with pytest.raises(pulumi.RunError, match=path):
        refuse_unbuilt(cluster("infra", change))


def test_the_committed_stacks_ask_for_nothing_unbuilt() -> None:
    for stack in ("infra", "apps"):
        refuse_unbuilt(cluster(stack))
