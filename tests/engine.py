"""A recording stand-in for the Pulumi engine: runs the program and remembers every registration."""

from __future__ import annotations

import asyncio
import json
import runpy
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml
from google.protobuf import json_format
from pulumi.runtime import mocks
from pulumi.runtime.proto import callback_pb2

from tests.computed import computed

ROOT = Path(__file__).parent.parent
STACKS = sorted(path.stem.removeprefix("Pulumi.") for path in ROOT.glob("Pulumi.*.yaml"))
SECRETS = {
    "PROXMOX_TOKEN": "groundwork@pve!program=11111111-aaaa-bbbb-cccc-000000000001",
    "PROXMOX_CSI_TOKEN": "csi@pve!driver=22222222-aaaa-bbbb-cccc-000000000002",
    "GIT_TOKEN": "git-token-of-the-tests",
}
PURE_INVOKES = {"talos:machine/getConfiguration:getConfiguration"}
SECRET_SIGNATURE = "4dabf18193072939515e22adb298388d"
SECRET_VALUE = "1b47061264138c4ac30d75fd1eb44270"


@dataclass(frozen=True)
class Registration:
    urn: str
    type: str
    name: str
    custom: bool
    remote: bool
    parent: str
    provider: str
    protect: bool
    retain_on_delete: bool
    ignore_changes: tuple[str, ...]
    dependencies: frozenset[str]
    property_dependencies: frozenset[str]
    inputs: dict[str, Any] = field(hash=False)


class Mocks(mocks.Mocks):
    def __init__(self) -> None:
        self.invokes: list[tuple[str, dict[str, Any]]] = []

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[Any, Any]]:
        return f"{args.name}-id", {**args.inputs, **computed(args.typ, args.inputs)}

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[Any, Any], list[tuple[str, str]]]:
        if args.token not in PURE_INVOKES:
            raise AssertionError(f"{args.token} would reach out during a preview")
        self.invokes.append((args.token, args.args))
        return {"machineConfiguration": json.dumps(args.args, sort_keys=True, default=str)}, []


class Monitor(mocks.MockMonitor):
    def __init__(self, inner: Mocks) -> None:
        super().__init__(inner)
        self.registrations: dict[str, Registration] = {}

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802 - the engine's own name
        response = super().RegisterResource(request)
        self.registrations[response.urn] = _registration(response.urn, request)
        return response


def _registration(urn: str, request: Any) -> Registration:
    from_properties = {each for names in request.propertyDependencies.values() for each in names.urns}
    return Registration(
        urn=urn,
        type=request.type,
        name=request.name,
        custom=request.custom,
        remote=request.remote,
        parent=request.parent,
        provider=request.provider,
        protect=request.protect,
        retain_on_delete=request.retainOnDelete,
        ignore_changes=tuple(request.ignoreChanges),
        dependencies=frozenset(request.dependencies),
        property_dependencies=frozenset(from_properties),
        inputs=json_format.MessageToDict(request.object),
    )


class Callbacks:
    """Stands where the engine would call transforms back; remembers them."""

    def __init__(self) -> None:
        self.transforms: list[Any] = []

    def register_transform(self, transform: Any) -> callback_pb2.Callback:
        self.transforms.append(transform)
        return callback_pb2.Callback(token=transform.__name__, target="tests")


class Run:
    """One run of the program, and questions about what it registered."""

    def __init__(self, monitor: Monitor, inner: Mocks, outputs: dict[str, tuple[bool, Any]]) -> None:
        self.all = monitor.registrations
        self.outputs = outputs
        """What the stack exports: whether it is secret, and the value."""
        self.invokes = inner.invokes

    def one(self, type_suffix: str, name: str) -> Registration:
        found = [each for each in self.all.values() if each.type.endswith(type_suffix) and each.name == name]
        assert len(found) == 1, f"{type_suffix} {name}: {[each.urn for each in found]}"
        return found[0]

    def of_type(self, type_suffix: str) -> list[Registration]:
        return [each for each in self.all.values() if each.type.endswith(type_suffix)]

    def inside(self, urn: str) -> set[str]:
        """Every resource below a component, itself included."""
        below = {urn}
        for each in self.all.values():
            if each.parent in below:
                below.add(each.urn)
        return below

    def behind(self, urn: str) -> set[str]:
        """Everything that must exist before this resource: dependencies, parents and providers, all the way down."""
        seen: set[str] = set()
        todo = [urn]
        while todo:
            each = self.all.get(todo.pop())
            if each is None or each.urn in seen:
                continue
            seen.add(each.urn)
            provider = each.provider.rsplit("::", 1)[0]
            todo += [*each.dependencies, *each.property_dependencies, each.parent, provider]
        return seen - {urn}

    def waits_for(self, later: str, earlier: str) -> bool:
        """Whether every custom resource of `earlier` is behind each resource of `later` that is not identity."""
        customs = {urn for urn in self.inside(earlier) if self.all[urn].custom}
        return bool(customs) and all(customs <= self.behind(urn) for urn in self.leaves(later))

    def leaves(self, urn: str) -> Iterable[str]:
        return [each for each in self.inside(urn) if self.all[each].custom]


def run(
    stack: str,
    monkeypatch: pytest.MonkeyPatch,
    change: Any = None,
    environment: dict[str, str] | None = None,
    more: dict[str, str] | None = None,
) -> Run:
    """Run the whole program for one committed stack, with `change(cluster)` applied to its file's cluster."""
    for name, value in (SECRETS if environment is None else environment).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(ROOT)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    pulumi.runtime.settings.reset_options()
    document = yaml.safe_load((ROOT / f"Pulumi.{stack}.yaml").read_text())["config"]
    if change is not None:
        change(document["groundwork:cluster"])
    document |= {f"groundwork:{key}": value for key, value in (more or {}).items()}
    pulumi.runtime.set_all_config(
        {key: value if isinstance(value, str) else json.dumps(value) for key, value in document.items()},
        [f"groundwork:{key}" for key in more or {}],
    )
    inner = Mocks()
    monitor = Monitor(inner)
    mocks.set_mocks(inner, project="groundwork", stack=stack, preview=False, monitor=monitor)
    monkeypatch.setattr(pulumi.runtime.settings.SETTINGS, "callbacks", Callbacks())

    exported: dict[str, tuple[bool, Any]] = {}

    async def collect() -> None:
        root = pulumi.runtime.get_root_resource()
        for name, value in getattr(root, "outputs", {}).items():
            output = pulumi.Output.from_input(value)
            exported[name] = (await output.is_secret(), await output.future())

    def program() -> pulumi.Output[None]:
        runpy.run_path(str(ROOT / "__main__.py"))
        return pulumi.Output.from_input(collect())

    try:
        pulumi.runtime.test(program)()
    finally:
        loop.close()
    return Run(monitor, inner, exported)
