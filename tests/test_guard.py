"""The guard of the pull-request preview: what a cluster cannot lose."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from tests.engine import ROOT

SPEC = importlib.util.spec_from_file_location("guard", ROOT / ".ci" / "guard.py")
assert SPEC is not None
assert SPEC.loader is not None
guard = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(guard)

VM = "urn:pulumi:infra::groundwork::groundwork:index:ProxmoxNodes$proxmoxve:index/vmLegacy:VmLegacy::infra-w-1"
GATE = "urn:pulumi:infra::groundwork::groundwork:index:HealthGate$pulumi-python:dynamic/groundwork:Gate::infra-etcd"


def preview(op: str, urn: str) -> dict[str, Any]:
    return {"steps": [{"op": op, "urn": urn}]}


@pytest.mark.parametrize("op", ["delete", "replace", "create-replacement", "delete-replaced"])
def test_the_loss_of_a_machine_is_named(op: str) -> None:
    assert guard.losses(preview(op, VM)) == [f"infra-w-1: {op} of a virtual machine and the data on it"]


@pytest.mark.parametrize("op", ["create", "update", "same"])
def test_what_loses_nothing_passes(op: str) -> None:
    assert guard.losses(preview(op, VM)) == []


def test_a_gate_may_be_deleted() -> None:
    assert guard.losses(preview("delete", GATE)) == []
