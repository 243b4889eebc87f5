"""The last gate: everything that could have broken while something else was being built, asked once more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pulumi import Input, Resource

from components.cilium_release import NAMESPACE
from components.flux_bootstrap import storage_target
from components.health_gate import HealthGate
from components.stage import Stage


def final_check(
    stage: Stage, talos: Input[dict[str, str]], kubeconfig: Input[str], *, after: Sequence[Resource]
) -> HealthGate:
    questions = final_questions(stage, talos, kubeconfig)
    return stage.gate("G18", "final", {"gates": questions}, parent=None, after=after)


def final_questions(stage: Stage, talos: Input[dict[str, str]], kubeconfig: Input[str]) -> list[dict[str, Any]]:
    config = stage.config
    everyone = {"nodes": stage.nodes(), "kubeconfig": kubeconfig}
    cilium = {**everyone, "namespace": NAMESPACE}
    kubelets = {
        "nodes": stage.nodes(),
        "talos": talos,
        "talos_version": config.versions.talos,
        "kubernetes_version": config.versions.kubernetes,
        "endpoint": str(config.network.vip),
    }
    source = {"url": str(config.flux.url), "branch": config.flux.branch, "path": config.flux.path}
    questions = [
        _question("G4", "kubelets", kubelets),
        _question("G9", "cilium-workloads", cilium),
        _question("G10", "nodes-ready", everyone),
        _question("G11", "cilium-agents", cilium),
        _question("G15", "git-synced", {"kubeconfig": kubeconfig, **source}),
        _question("G16", "secrets-unsealed", {"kubeconfig": kubeconfig}),
    ]
    if config.storage.csi:
        questions.append(_question("G17", "storage", storage_target(stage, kubeconfig)))
    return questions


def _question(gate: str, probe: str, target: dict[str, Any]) -> dict[str, Any]:
    return {"gate": gate, "probe": probe, "target": target}
