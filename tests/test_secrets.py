"""Nothing secret leaves the program in the clear."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.engine import SECRET_SIGNATURE, SECRET_VALUE, SECRETS, STACKS, Run, run

SECRET_OUTPUTS = {"kubeconfig", "talosconfig", "talos_secrets_backup", "sealing_key_backup"}
OPEN_OUTPUTS = {
    "sealing_certificate", "sealing_fingerprint", "nodes", "versions", "endpoints", "expiry",
    "machine_config_digests", "machine_config_patches",
}  # fmt: skip
PLAIN_SECRETS = [*SECRETS.values(), "token-of-the-tests", "a2V5LW9mLXRoZS10ZXN0cw==", "BEGIN PRIVATE KEY", "a2V5"]


@pytest.fixture(params=STACKS, scope="module")
def graph(request: pytest.FixtureRequest) -> Run:
    with pytest.MonkeyPatch.context() as patch:
        return run(request.param, patch)


def in_the_clear(value: Any) -> str:
    """Everything that is not wrapped as a secret, as text."""
    if isinstance(value, dict):
        if value.get(SECRET_SIGNATURE) == SECRET_VALUE:
            return ""
        return " ".join(f"{key} {in_the_clear(item)}" for key, item in value.items())
    if isinstance(value, list):
        return " ".join(in_the_clear(item) for item in value)
    return str(value)


def test_no_input_of_any_resource_holds_a_secret_in_the_clear(graph: Run) -> None:
    for each in graph.all.values():
        clear = in_the_clear(each.inputs)
        leaked = [secret for secret in PLAIN_SECRETS if secret in clear]
        assert leaked == [], each.urn


def test_outputs_are_secret_or_open_as_announced(graph: Run) -> None:
    assert set(graph.outputs) == SECRET_OUTPUTS | OPEN_OUTPUTS
    assert {name for name, (secret, _) in graph.outputs.items() if secret} == SECRET_OUTPUTS


def test_no_secret_reaches_the_hypervisor(graph: Run) -> None:
    for machine in graph.of_type("vmLegacy:VmLegacy"):
        text = json.dumps(machine.inputs)
        assert SECRET_SIGNATURE not in text
        assert "userAccount" not in text


def test_the_keys_that_leave_the_sdk_are_those_of_the_providers_schema(graph: Run) -> None:
    assert len(graph.invokes) == len(graph.of_type("vmLegacy:VmLegacy"))
    for token, arguments in graph.invokes:
        assert token == "talos:machine/getConfiguration:getConfiguration"
        assert "bootstrapToken" in arguments["machineSecrets"]["secrets"]
        assert not [key for key in _keys(arguments) if "_" in key]


def _keys(value: Any) -> list[str]:
    if not isinstance(value, dict):
        return []
    return [key for own, item in value.items() for key in (own, *_keys(item))]
