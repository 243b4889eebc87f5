"""Flux: its operator, its instance, and the proof that the tree in Git has become the cluster."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pulumi_kubernetes as kubernetes
from pulumi import ComponentResource, Output, Resource, ResourceOptions

from components import questions
from components.questions import Access
from components.retained import retained
from components.stage import Stage
from config import ClusterConfig

OPERATOR = "https://github.com/controlplaneio-fluxcd/flux-operator/releases/download"
MANIFESTS = "oci://ghcr.io/controlplaneio-fluxcd/flux-operator-manifests"
CONTROLLERS = ["source-controller", "kustomize-controller", "helm-controller", "notification-controller"]
GIT_SECRET = "flux-system"  # noqa: S105 - a name, not a secret

# By default a step looks every 30 s whether the one before it is ready; a chain of seven would wait for minutes.
QUICK_DEPENDENCIES = {
    "target": {"kind": "Deployment", "name": "(kustomize-controller|helm-controller)"},
    "patch": json.dumps(
        [{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--requeue-dependency=5s"}]
    ),
}


def instance_spec(config: ClusterConfig, *, private: bool) -> dict[str, Any]:
    sync = {
        "kind": "GitRepository",
        "url": str(config.flux.url),
        "ref": f"refs/heads/{config.flux.branch}",
        "path": config.flux.path,
        "interval": config.flux.interval,
        **({"pullSecret": GIT_SECRET} if private else {}),
    }
    return {
        "distribution": {
            "version": config.versions.flux,
            "registry": "ghcr.io/fluxcd",
            # Pinned: the default follows a floating tag.
            "artifact": f"{MANIFESTS}:v{config.versions.flux_operator}",
        },
        "components": CONTROLLERS,
        "cluster": {"type": "kubernetes", "multitenant": False, "networkPolicy": True, "domain": "cluster.local"},
        "kustomize": {"patches": [QUICK_DEPENDENCIES]},
        "sync": sync,
    }


@dataclass(frozen=True, kw_only=True)
class FluxBootstrapArgs:
    stage: Stage
    access: Access
    git_token: Output[str] | None


class FluxBootstrap(ComponentResource):
    """Nothing of it is deleted from a living cluster: destroy forgets it."""

    def __init__(self, name: str, args: FluxBootstrapArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("groundwork:index:FluxBootstrap", name, {}, opts)
        config = args.stage.config
        operator = kubernetes.yaml.v2.ConfigFile(
            f"{name}-flux-operator",
            file=f"{OPERATOR}/v{config.versions.flux_operator}/install.yaml",
            skip_await=True,
            opts=retained(self),
        )
        operating = args.stage.gate(questions.flux_operator(args.access), parent=self, after=[operator])
        instance = self._instance(config, args, [operating, *self._credentials(name, config, args)])
        running = args.stage.gate(questions.flux_instance(args.access), parent=self, after=[instance])
        self._gate_hand_over(args, running)
        self.register_outputs({})

    def _credentials(self, name: str, config: ClusterConfig, args: FluxBootstrapArgs) -> list[Resource]:
        if args.git_token is None:
            return []
        secret = kubernetes.core.v1.Secret(
            f"{name}-git",
            metadata={"name": GIT_SECRET, "namespace": config.flux.namespace},
            string_data={"username": "git", "password": args.git_token},
            opts=retained(self),
        )
        return [secret]

    def _instance(self, config: ClusterConfig, args: FluxBootstrapArgs, after: list[Resource]) -> Resource:
        return kubernetes.apiextensions.CustomResource(
            "flux",
            api_version="fluxcd.controlplane.io/v1",
            kind="FluxInstance",
            metadata={
                "name": "flux",
                "namespace": config.flux.namespace,
                "annotations": {"pulumi.com/skipAwait": "true"},
            },
            spec=instance_spec(config, private=args.git_token is not None),
            opts=retained(self, after=after),
        )

    def _gate_hand_over(self, args: FluxBootstrapArgs, running: Resource) -> None:
        stage, config = args.stage, args.stage.config
        synced = stage.gate(questions.git_synced(config, args.access), parent=self, after=[running])
        unsealed = stage.gate(questions.secrets_unsealed(args.access), parent=self, after=[synced])
        for question in questions.storage(config, args.access):
            stage.gate(question, parent=self, after=[unsealed])
