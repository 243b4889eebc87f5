"""The kubeconfig and talosconfig of a stack, from its state: there even when the last update stopped halfway."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from lab.run_directory import write_private

SECRET_MARK = "4dabf18193072939515e22adb298388d"
"""The key by which an exported state marks a secret."""
KUBECONFIG = "talos:cluster/kubeconfig:Kubeconfig"
SECRETS = "talos:machine/secrets:Secrets"


def write(state: Mapping[str, Any], directory: Path, stack: str, roles: Mapping[str, str]) -> dict[str, str]:
    """Write what the state has, for machines by address; the variables that point clients at it, there or not."""
    texts = {"KUBECONFIG": kubeconfig(state), "TALOSCONFIG": talosconfig(state, stack, roles)}
    paths = {variable: directory / f"{variable.lower()}.{stack}" for variable in texts}
    for variable, text in texts.items():
        if text:
            write_private(paths[variable], text)
    return {variable: str(path) for variable, path in paths.items()}


def kubeconfig(state: Mapping[str, Any]) -> str | None:
    outputs = _outputs(state, KUBECONFIG)
    return str(outputs["kubeconfigRaw"]) if outputs else None


def talosconfig(state: Mapping[str, Any], stack: str, roles: Mapping[str, str]) -> str | None:
    outputs = _outputs(state, SECRETS)
    if not outputs:
        return None
    client = outputs["clientConfiguration"]
    context = {
        # A worker forwards to nobody.
        "endpoints": [address for address, role in roles.items() if role == "controlplane"],
        "nodes": list(roles),
        "ca": client["caCertificate"],
        "crt": client["clientCertificate"],
        "key": client["clientKey"],
    }
    return yaml.safe_dump({"context": stack, "contexts": {stack: context}})


def in_clear(value: Any) -> Any:
    """A value of an exported state with its secrets opened."""
    if isinstance(value, Mapping):
        if SECRET_MARK in value:
            return in_clear(json.loads(value["plaintext"]))
        return {key: in_clear(item) for key, item in value.items()}
    if isinstance(value, list):
        return [in_clear(item) for item in value]
    return value


def _outputs(state: Mapping[str, Any], kind: str) -> dict[str, Any] | None:
    resources = state.get("deployment", {}).get("resources") or []
    found = (resource.get("outputs") for resource in resources if resource["type"] == kind)
    return next((in_clear(outputs) for outputs in found if outputs), None)
