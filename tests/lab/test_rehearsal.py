"""The committed infra stack on the real engine, from nothing to healthy, and what must hold afterwards."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Any

import pytest

from lab.client_files import SECRETS, in_clear
from lab.environment import read_credentials
from tests.lab.conftest import Stage

pytestmark = pytest.mark.lab


def test_the_infra_stack_becomes_healthy(infra: Stage) -> None:
    report = infra.report
    assert report["success"], report["failure"]
    gates = [gate["gate"] for gate in report["gates"]]
    assert gates[0] == "GP"
    assert gates[-1] == "G18"
    assert set(gates) >= {
        "G1",
        "G2",
        "G3",
        "G4",
        "G5",
        "G6",
        "G7",
        "G8",
        "G9",
        "G10",
        "G11",
        "G12",
        "G14",
        "G15",
        "G17",
    }
    assert all(gate["evidence"] for gate in report["gates"])


def test_the_report_names_every_plugin_and_what_was_not_shown(infra: Stage) -> None:
    report = infra.report
    named = {program["name"]: program["origin"] for program in report["programs"]}
    plugins = {f"pulumi-resource-{name}" for name in ("kubernetes", "proxmoxve", "talos", "tls", "command")}
    assert plugins <= named.keys()
    assert all(named.values())
    assert report["not_shown"]


def test_preview_changes_nothing(infra: Stage) -> None:
    steps = {step["step"]: step for step in infra.report["steps"]}
    assert steps["preview"]["writes"] == 0
    assert steps["second-preview"]["writes"] == 0
    assert steps["up"]["writes"] > 0


def test_a_second_preview_is_empty(infra: Stage) -> None:
    steps = {step["step"]: step for step in infra.report["steps"]}
    assert steps["second-preview"]["exit_code"] == 0


def test_refresh_finds_no_drift(infra: Stage) -> None:
    done = infra.engine.operate("refresh", "refresh", "--preview-only", "--expect-no-changes", "--suppress-outputs")
    assert done.code == 0, done.tail()


def test_kubectl_and_talosctl_work_inside(infra: Stage) -> None:
    nodes = infra.shell("kubectl", "get", "nodes", "--no-headers")
    assert nodes.stdout.count(" Ready ") == 6, nodes.stdout + nodes.stderr
    services = infra.shell("talosctl", "service", "--nodes", "10.25.11.21")
    assert "kubelet" in services.stdout, services.stderr


def test_no_secret_is_in_clear_anywhere(infra: Stage) -> None:
    known = set(_secrets(infra))
    assert len(known) > 12
    folders = [infra.run.root / name for name in ("logs", "events", "state", "project/.diagnostics")]
    paths = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    paths += [*infra.run.root.glob("report-*.json"), *infra.run.runtime.rglob("*.log")]
    texts = {path: path.read_text(errors="replace") for path in paths}
    assert not {(path, secret[:6]) for path, text in texts.items() for secret in known if secret in text}


def _secrets(stage: Stage) -> Iterator[str]:
    """Tokens, the passphrase, every private key and what else a Talos cluster must keep to itself."""
    yield from (token.partition("=")[2] or token for token in read_credentials(stage.run).by_key().values())
    yield (stage.run.root / "passphrase").read_text()
    for resource in stage.engine.export(show_secrets=True)["deployment"]["resources"]:
        opened = in_clear({"inputs": resource.get("inputs"), "outputs": resource.get("outputs")})
        for text in _strings(opened):
            yield from (word for word in [text, *re.findall(r"[A-Za-z0-9+/=]{100,}", text)] if _is_private(word))
        if resource["type"] == SECRETS:
            machine = opened["outputs"]["machineSecrets"]
            yield from _strings([machine["secrets"], machine["trustdinfo"]])


def _is_private(text: str) -> bool:
    """A private key in PEM, or that in base64."""
    try:
        decoded = base64.b64decode(text, validate=True)
    except ValueError:
        decoded = b""
    return (text.startswith("-----BEGIN") and "PRIVATE KEY" in text) or b"PRIVATE KEY" in decoded


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings(item)
