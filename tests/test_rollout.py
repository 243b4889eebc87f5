"""What is rolled out, what is left alone, and that the latter is said."""

from __future__ import annotations

from typing import Any

import pulumi
import pytest

from components.rollout import RolloutProvider


def news(desired: dict[str, str], rolling: list[str]) -> dict[str, Any]:
    return {"what": "machine configuration", "remedy": "name it", "desired": desired, "rolling": rolling}


@pytest.fixture
def warnings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    said: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", said.append)
    return said


def test_a_difference_left_alone_is_said_and_is_no_change(warnings: list[str]) -> None:
    olds = {"applied": {"a": "1", "b": "1"}}
    assert RolloutProvider().diff("id", olds, news({"a": "2", "b": "1"}, [])).changes is False
    assert warnings == ["machine configuration of a differs from the stack file and is left alone; name it"]


def test_a_named_node_is_rolled_out_silently(warnings: list[str]) -> None:
    olds = {"applied": {"a": "1", "b": "1"}}
    wanted = news({"a": "2", "b": "2"}, ["a"])
    assert RolloutProvider().diff("id", olds, wanted).changes is True
    assert RolloutProvider().update("id", olds, wanted).outs == {"applied": {"a": "2", "b": "1"}}
    assert warnings[0].startswith("machine configuration of b ")


def test_a_new_node_is_a_change_and_no_difference(warnings: list[str]) -> None:
    assert RolloutProvider().diff("id", {"applied": {"a": "1"}}, news({"a": "1", "b": "1"}, [])).changes is True
    assert warnings == []


def test_creation_records_everything() -> None:
    assert RolloutProvider().create(news({"a": "1"}, [])).outs == {"applied": {"a": "1"}}


def test_what_is_not_known_yet_is_a_change() -> None:
    unknown = news({}, [])
    unknown["desired"] = pulumi.output.UNKNOWN
    assert RolloutProvider().diff("id", {}, unknown).changes is True
