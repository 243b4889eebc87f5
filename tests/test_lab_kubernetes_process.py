"""What the programs of a lab's cluster share with one another."""

from __future__ import annotations

import itertools

import pytest

from lab.kubernetes import process


def test_a_port_is_handed_out_once_even_before_anybody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_handed_out", set())
    offered = itertools.chain([4001, 4001, 4001], [4002])
    monkeypatch.setattr(process, "_unused_port", lambda: next(offered))
    assert [process.free_port(), process.free_port()] == [4001, 4002]
