"""Every key the program sends, at every depth, is one the provider's own schema knows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from lab.toolchain.programs import Programs
from tests.engine import SECRET_SIGNATURE, SECRET_VALUE, STACKS, Run, run

pytestmark = pytest.mark.lab

SENT = (
    "proxmoxve:index/vmLegacy:VmLegacy",
    "proxmoxve:download/file:File",
    "talos:imageFactory/schematic:Schematic",
    "talos:machine/secrets:Secrets",
    "talos:machine/configurationApply:ConfigurationApply",
    "talos:machine/bootstrap:Bootstrap",
    "talos:cluster/kubeconfig:Kubeconfig",
    "tls:index/privateKey:PrivateKey",
    "tls:index/selfSignedCert:SelfSignedCert",
)
INVOKED = ("talos:machine/getConfiguration:getConfiguration",)
Schema = dict[str, Any]


@cache
def schema(plugin: str) -> Schema:
    directory = Programs().path(f"pulumi-resource-{plugin}").parent
    content: Schema = json.loads((directory / "schema" / plugin / "schema.json").read_text())
    return content


@pytest.fixture(params=STACKS, scope="module")
def graph(request: pytest.FixtureRequest) -> Run:
    with pytest.MonkeyPatch.context() as patch:
        return run(str(request.param), patch)


def faults(plugin: str, value: Any, shape: Schema, where: str) -> Iterator[str]:
    """Unknown and missing keys of a value, against a property's type."""
    if isinstance(value, dict) and SECRET_SIGNATURE in value:
        value = value.get(SECRET_VALUE, value.get("value"))
    if "$ref" in shape:
        shape = schema(plugin)["types"][shape["$ref"].rsplit("/types/", maxsplit=1)[1].replace("%2F", "/")]
    if isinstance(value, list) and "items" in shape:
        for position, item in enumerate(value):
            yield from faults(plugin, item, shape["items"], f"{where}[{position}]")
    elif isinstance(value, dict) and "properties" in shape:
        yield from object_faults(plugin, value, shape["properties"], shape.get("required", []), where)


def object_faults(plugin: str, value: dict[str, Any], known: Schema, required: list[str], where: str) -> Iterator[str]:
    yield from (f"{where}.{key} is unknown" for key in value if key not in known)
    yield from (f"{where}.{key} is missing" for key in required if key not in value)
    for key in value.keys() & known.keys():
        yield from faults(plugin, value[key], known[key], f"{where}.{key}")


@pytest.mark.parametrize("token", SENT)
def test_resources_send_what_the_provider_takes(graph: Run, token: str) -> None:
    plugin = token.split(":", maxsplit=1)[0]
    declared = schema(plugin)["resources"][token]
    known, required = declared["inputProperties"], declared.get("requiredInputs", [])
    sent = [each for each in graph.all.values() if each.type == token]
    assert sent
    for each in sent:
        assert list(object_faults(plugin, each.inputs, known, required, each.name)) == []


@pytest.mark.parametrize("token", INVOKED)
def test_invokes_send_what_the_provider_takes(graph: Run, token: str) -> None:
    plugin = token.split(":", maxsplit=1)[0]
    declared = schema(plugin)["functions"][token]["inputs"]
    asked = [arguments for name, arguments in graph.invokes if name == token]
    assert asked
    for arguments in asked:
        found = object_faults(plugin, arguments, declared["properties"], declared.get("required", []), token)
        assert list(found) == []


def test_a_wrong_key_is_seen_at_any_depth() -> None:
    declared = schema("proxmoxve")["resources"]["proxmoxve:index/vmLegacy:VmLegacy"]
    machine = {"nodeName": "a", "initialization": {"ipConfigs": [{"ipv4": {"adress": "x"}}]}, "node_name": "a"}
    found = set(object_faults("proxmoxve", machine, declared["inputProperties"], [], "vm"))
    assert found == {"vm.node_name is unknown", "vm.initialization.ipConfigs[0].ipv4.adress is unknown"}
