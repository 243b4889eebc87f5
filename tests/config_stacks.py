"""Loads the committed stack files, changed here and there, the way Pulumi hands them to the program."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from pulumi.runtime import MockResourceArgs, Mocks, set_all_config, set_mocks

import config

PROJECT = Path(__file__).resolve().parent.parent
STACKS = ("infra", "apps")
ENVIRONMENT = {
    "PROXMOX_TOKEN": "groundwork@pve!up=11111111-1111-1111-1111-111111111111",
    "PROXMOX_CSI_TOKEN": "csi@pve!driver=22222222-2222-2222-2222-222222222222",
    "GIT_TOKEN": "not-a-real-git-token",
}
DELETE = object()

Patch = Mapping[str, Any]


class NoResources(Mocks):
    """A configuration registers nothing; whatever tries is a defect."""

    def new_resource(self, args: MockResourceArgs) -> tuple[str | None, dict[Any, Any]]:
        raise AssertionError(f"{args.name} was registered")

    def call(self, args: Any) -> tuple[dict[Any, Any], list[tuple[str, str]] | None]:
        raise AssertionError(f"{args.token} was called")


@cache
def _document(stack: str) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((PROJECT / f"Pulumi.{stack}.yaml").read_text())
    return document


def committed(stack: str) -> dict[str, Any]:
    """The config of a committed stack file, without the project's name before the keys."""
    items = copy.deepcopy(_document(stack))["config"].items()
    return {key.removeprefix("groundwork:"): value for key, value in items}


def patched(data: dict[str, Any], patch: Patch) -> dict[str, Any]:
    for path, value in patch.items():
        *parents, last = path.split(".")
        target = data
        for part in parents:
            target = target.setdefault(part, {})
        if value is DELETE:
            del target[last]
        else:
            target[last] = value
    return data


def write(directory: Path, stack: str, data: Mapping[str, Any]) -> None:
    document = {"config": {key if ":" in key else f"groundwork:{key}": value for key, value in data.items()}}
    (directory / f"Pulumi.{stack}.yaml").write_text(json.dumps(document))  # JSON is YAML, and quicker


def load(
    directory: Path, stack: str, patches: Mapping[str, Patch] | None = None, secret_keys: Sequence[str] = ()
) -> config.Settings:
    """Writes both stack files with their patches, then loads one as Pulumi would."""
    files = {name: patched(committed(name), (patches or {}).get(name, {})) for name in STACKS}
    for name, data in files.items():
        write(directory, name, data)
    hand_over(stack, files[stack], secret_keys)
    return config.load(directory)


def hand_over(stack: str, data: Mapping[str, Any], secret_keys: Sequence[str] = ()) -> None:
    """Pulumi gives a program strings: objects are JSON."""
    set_mocks(NoResources(), project="groundwork", stack=stack)
    values = {key if ":" in key else f"groundwork:{key}": _text(value) for key, value in data.items()}
    set_all_config(values, [f"groundwork:{key}" for key in secret_keys])


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
