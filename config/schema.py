"""The JSON Schema that gives editors completion in stack files: `python -m config.schema` writes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .model import ClusterConfig
from .secrets import KEYS

PROJECT = "groundwork"
FILE = Path(__file__).resolve().parent.parent / "schema" / "stack.schema.json"

DERIVED = {"ClusterConfig": ["sealing"], "Sealing": ["directory"], "Flux": ["path"], "Host": ["zone"]}
"""Required in the model, filled in from what stands beside them."""

SECRET: dict[str, Any] = {
    "description": "`pulumi config set --secret`, or env:NAME to read the environment.",
    "anyOf": [
        {"type": "string", "pattern": "^env:[A-Za-z_][A-Za-z0-9_]*$"},
        {"type": "object", "properties": {"secure": {"type": "string"}}, "required": ["secure"]},
    ],
}


def render() -> str:
    return json.dumps(stack_schema(), indent=2, ensure_ascii=False) + "\n"


def stack_schema() -> dict[str, Any]:
    cluster = ClusterConfig.model_json_schema()
    definitions = cluster.pop("$defs") | {"ClusterConfig": cluster}
    for name, derived in DERIVED.items():
        required = definitions[name].get("required", [])
        definitions[name]["required"] = [key for key in required if key not in derived]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A stack file of groundwork",
        "type": "object",
        "properties": {"config": _config()},
        "required": ["config"],
        "$defs": definitions,
    }


def _config() -> dict[str, Any]:
    own = {f"{PROJECT}:cluster": {"$ref": "#/$defs/ClusterConfig"}} | {f"{PROJECT}:{key}": SECRET for key in KEYS}
    return {
        "type": "object",
        "properties": own,
        "required": [f"{PROJECT}:cluster", f"{PROJECT}:proxmoxToken"],
        "propertyNames": {"anyOf": [{"enum": list(own)}, {"not": {"pattern": f"^{PROJECT}:"}}]},
    }


if __name__ == "__main__":
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(render())
