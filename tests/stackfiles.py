"""The committed stack files as configuration, with changes merged in."""

from __future__ import annotations

from typing import Any

import yaml

from config import ClusterConfig
from tests.engine import ROOT


def merge(base: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in change.items():
        below = result.get(key)
        result[key] = merge(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return result


def cluster(stack: str, change: dict[str, Any] | None = None) -> ClusterConfig:
    document = yaml.safe_load((ROOT / f"Pulumi.{stack}.yaml").read_text())
    return ClusterConfig.model_validate(merge(document["config"]["groundwork:cluster"], change or {}))
