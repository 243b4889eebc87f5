"""The committed JSON Schema is the model's, and speaks of every key the stack files use."""

from __future__ import annotations

import json
from typing import Any

import pytest

from config import schema
from tests import config_stacks as stacks

SCHEMA: dict[str, Any] = json.loads(schema.FILE.read_text())


def test_committed_schema_is_current() -> None:
    assert schema.FILE.read_text() == schema.render(), "run: python -m config.schema"


def resolve(node: dict[str, Any]) -> dict[str, Any]:
    for option in node.get("anyOf", []):
        if "$ref" in option:
            return resolve(option)
    return SCHEMA["$defs"][node["$ref"].rsplit("/", 1)[1]] if "$ref" in node else node


def inside(node: dict[str, Any], key: str) -> dict[str, Any] | None:
    """The schema of a key: a field's, or the one for all entries of a map."""
    if key in node.get("properties", {}):
        return dict(node["properties"][key])
    entries = [*node.get("patternProperties", {}).values(), node.get("additionalProperties")]
    return next((entry for entry in entries if entry), None)


def unknown(data: Any, node: dict[str, Any], path: str) -> list[str]:
    """Paths in the data for which the schema has no word, and those it misses."""
    node = resolve(node)
    if not isinstance(data, dict):
        return []
    found = [f"{path}.{key} missing" for key in node.get("required", []) if key not in data]
    for key, value in data.items():
        inner = inside(node, key)
        found += unknown(value, inner, f"{path}.{key}") if inner else [f"{path}.{key}"]
    return found


@pytest.mark.parametrize("stack", stacks.STACKS)
def test_stack_files_fit(stack: str) -> None:
    cluster = stacks.committed(stack)["cluster"]
    assert unknown(cluster, {"$ref": "#/$defs/ClusterConfig"}, "cluster") == []


def test_a_misspelt_key_does_not_fit() -> None:
    cluster = stacks.patched(stacks.committed("infra"), {"cluster.nodes.infra-w-1.adress": 1})["cluster"]
    found = unknown(cluster, {"$ref": "#/$defs/ClusterConfig"}, "cluster")
    assert found == ["cluster.nodes.infra-w-1.adress"]


def test_what_is_derived_is_not_required() -> None:
    assert "path" not in SCHEMA["$defs"]["Flux"]["required"]
    assert SCHEMA["$defs"]["Host"]["required"] == []


@pytest.mark.parametrize("stack", stacks.STACKS)
def test_stack_files_name_the_schema(stack: str) -> None:
    first = (stacks.PROJECT / f"Pulumi.{stack}.yaml").read_text().splitlines()[0]
    assert first == "# yaml-language-server: $schema=schema/stack.schema.json"
