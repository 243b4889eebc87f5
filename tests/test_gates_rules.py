"""Rules that hold for every file of the gates."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from gates.registry import PROBES

FILES = sorted(Path(__file__).parent.parent.joinpath("gates").glob("*.py"))
CONTRACT = {
    "proxmox-preflight", "talos-api", "talos-configured", "etcd", "kubelets", "kube-api", "vip", "nodes-registered",
    "prerequisites", "crds", "cilium-workloads", "nodes-ready", "cilium-agents", "pod-network", "lb-pools", "dns",
    "cloud-provider", "sealing-key", "sealed-files", "flux-operator", "flux-instance", "git-synced", "secrets-unsealed",
    "storage", "final", "mesh",
}  # fmt: skip


def imported(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    plain = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    return plain | {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_only_the_provider_knows_pulumi(path: Path) -> None:
    knows = any(name.split(".")[0] in ("pulumi", "grpc") for name in imported(path))
    assert knows is (path.stem == "provider")


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_git_is_the_only_program_a_gate_calls(path: Path) -> None:
    calls = {node.attr for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)}
    starts = calls & {"create_subprocess_exec", "create_subprocess_shell", "Popen", "system", "run_module"}
    assert starts == ({"create_subprocess_exec"} if path.stem == "git" else set())
    assert "subprocess" not in imported(path)


def test_every_probe_of_the_components_exists() -> None:
    assert set(PROBES) >= CONTRACT
    assert len({probe.title for probe in PROBES.values()}) == len(PROBES)
