import json
import stat
from pathlib import Path
from typing import Any

import yaml

from lab.client_files import SECRET_MARK, in_clear, write


def secret(value: Any) -> dict[str, str]:
    return {SECRET_MARK: "1b47061264138c4ac30d75fd1eb44270", "plaintext": json.dumps(value)}


STATE = {
    "deployment": {
        "resources": [
            {"type": "pulumi:pulumi:Stack", "urn": "urn"},
            {
                "type": "talos:machine/secrets:Secrets",
                "outputs": {
                    "clientConfiguration": secret({"caCertificate": "a", "clientCertificate": "b", "clientKey": "c"})
                },
            },
            {"type": "talos:cluster/kubeconfig:Kubeconfig", "outputs": {"kubeconfigRaw": secret("kind: Config")}},
        ]
    }
}


def test_clients_are_configured_from_the_state(tmp_path: Path) -> None:
    variables = write(STATE, tmp_path, "infra", {"10.0.0.1": "controlplane", "10.0.0.2": "worker"})
    kubeconfig, talosconfig = Path(variables["KUBECONFIG"]), Path(variables["TALOSCONFIG"])
    assert kubeconfig.read_text() == "kind: Config"
    context = yaml.safe_load(talosconfig.read_text())["contexts"]["infra"]
    assert context == {"endpoints": ["10.0.0.1"], "nodes": ["10.0.0.1", "10.0.0.2"], "ca": "a", "crt": "b", "key": "c"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in (kubeconfig, talosconfig)} == {0o600}


def test_a_stack_that_has_nothing_yet_still_points_clients_away_from_the_ambient_ones(tmp_path: Path) -> None:
    variables = write({"deployment": {}}, tmp_path, "infra", {})
    assert not any(Path(path).exists() for path in variables.values())


def test_secrets_inside_secrets_are_opened() -> None:
    assert in_clear({"a": [secret({"b": 1})]}) == {"a": [{"b": 1}]}
