"""The bridged plugins against the Python SDKs the program uses: same tokens, same inputs, real resources."""

import importlib
import inspect
import json
import re
import subprocess
from pathlib import Path

import pytest

from lab.toolchain.programs import Programs

pytestmark = pytest.mark.lab

PACKAGES = {"proxmoxve": "pulumi_proxmoxve", "talos": "pulumiverse_talos", "tls": "pulumi_tls"}

# Their ids are integers, which the bridge cannot carry; the program uses none of them.
LEFT_OUT = {
    "proxmoxve:cloned/vm:Vm",
    "proxmoxve:cloned/vmLegacy:VmLegacy",
    "proxmoxve:index/getVm2Legacy:getVm2Legacy",
    "proxmoxve:index/getVm:getVm",
    "proxmoxve:index/vm2Legacy:Vm2Legacy",
    "proxmoxve:index/vm:Vm",
}

# The upstream provider in the bridge is older than the one in the official plugin.
WRITE_ONLY = {"client_configuration_wo", "machine_configuration_input_wo"}

RESOURCES = {
    "pulumi_proxmoxve:VmLegacy": set(),
    "pulumi_proxmoxve.download:File": set(),
    "pulumi_proxmoxve:UserLegacy": set(),
    "pulumi_proxmoxve:RoleLegacy": set(),
    "pulumi_proxmoxve.user:Token": set(),
    "pulumi_proxmoxve:Acl": set(),
    "pulumiverse_talos.machine:Secrets": set(),
    "pulumiverse_talos.machine:Bootstrap": {"client_configuration_wo"},
    "pulumiverse_talos.machine:ConfigurationApply": WRITE_ONLY,
    "pulumiverse_talos.cluster:Kubeconfig": set(),
    "pulumiverse_talos.imagefactory:Schematic": set(),
    "pulumi_tls:PrivateKey": set(),
    "pulumi_tls:SelfSignedCert": set(),
}


def schema(plugin: str) -> dict[str, dict[str, dict[str, object]]]:
    directory = Programs().path(f"pulumi-resource-{plugin}").parent
    content: dict[str, dict[str, dict[str, object]]] = json.loads(
        (directory / "schema" / plugin / "schema.json").read_text()
    )
    return content


def sdk_tokens(plugin: str) -> set[str]:
    root = Path(inspect.getfile(importlib.import_module(PACKAGES[plugin]))).parent
    pattern = re.compile(rf"'({plugin}:[A-Za-z0-9_/]+:[A-Za-z0-9]+)'")
    return {token for file in root.rglob("*.py") for token in pattern.findall(file.read_text())}


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda match: "_" + match[1].lower(), name)


@pytest.mark.parametrize("plugin", PACKAGES)
def test_the_plugin_knows_every_token_of_the_sdk(plugin: str) -> None:
    known = schema(plugin)
    missing = sdk_tokens(plugin) - set(known["resources"]) - set(known["functions"])
    assert missing == (LEFT_OUT if plugin == "proxmoxve" else set())


@pytest.mark.parametrize("resource", RESOURCES)
def test_the_plugin_takes_the_inputs_of_the_sdk(resource: str) -> None:
    module, name = resource.split(":")
    cls = getattr(importlib.import_module(module), name)
    sdk = set(inspect.signature(cls._internal_init).parameters) - {"__self__", "resource_name", "opts", "__props__"}
    plugin = next(plugin for plugin, package in PACKAGES.items() if module.startswith(package))
    inputs = schema(plugin)["resources"][cls.pulumi_type]["inputProperties"]
    assert isinstance(inputs, dict)
    assert sdk - {snake(key) for key in inputs} == RESOURCES[resource]
    assert {snake(key) for key in inputs} <= sdk


@pytest.mark.parametrize(
    ("config", "complaint"),
    [
        ("machine: {typo: 1}", "unknown keys"),
        ("", "not found"),
        ("version: v1alpha1\nmachine: {type: worker}", "cluster"),
    ],
)
def test_talos_itself_refuses_a_bad_machine_config(config: str, complaint: str) -> None:
    check = Programs().path("talos-config-check")
    done = subprocess.run([check], input=config, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert complaint in done.stderr
