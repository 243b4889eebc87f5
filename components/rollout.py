"""A record of what was last rolled out, so that a preview can say which differences are being left alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi import Input, ResourceOptions
from pulumi.dynamic import CreateResult, DiffResult, Resource, ResourceProvider, UpdateResult


class RolloutProvider(ResourceProvider):
    """Holds no state, so that it is stored by reference."""

    serialize_as_secret_always = False

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        if pulumi.contains_unknowns(_news):
            return DiffResult(changes=True)
        applied = _olds.get("applied", {})
        left = left_alone(applied, _news["desired"], _news["rolling"])
        if left:
            pulumi.log.warn(
                f"{_news['what']} of {', '.join(left)} differs from the stack file and is left alone; {_news['remedy']}"
            )
        return DiffResult(changes=rolled_out(applied, _news["desired"], _news["rolling"]) != applied)

    def create(self, props: dict[str, Any]) -> CreateResult:
        return CreateResult(id_=props["what"], outs={"applied": props["desired"]})

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> UpdateResult:
        return UpdateResult(outs={"applied": rolled_out(_olds.get("applied", {}), _news["desired"], _news["rolling"])})


def left_alone(applied: Mapping[str, str], desired: Mapping[str, str], rolling: list[str]) -> list[str]:
    """What exists, should look different, and is not being rolled out."""
    return [name for name in desired if name in applied and applied[name] != desired[name] and name not in rolling]


def rolled_out(applied: Mapping[str, str], desired: Mapping[str, str], rolling: list[str]) -> dict[str, str]:
    """What will have been applied after this update."""
    kept = set(left_alone(applied, desired, rolling))
    return {name: applied[name] if name in kept else digest for name, digest in desired.items()}


class Rollout(Resource, module="groundwork", name="Rollout"):
    def __init__(
        self,
        name: str,
        *,
        what: str,
        remedy: str,
        desired: Input[Mapping[str, str]],
        rolling: list[str],
        opts: ResourceOptions | None = None,
    ) -> None:
        props = {"what": what, "remedy": remedy, "desired": desired, "rolling": rolling}
        super().__init__(RolloutProvider(), name, props, opts)
