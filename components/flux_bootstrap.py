"""Flux: its operator, its instance, and the proof that the tree in Git has become the cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pulumi_kubernetes as kubernetes
from pulumi import ComponentResource, Input, Output, Resource, ResourceOptions

from components.retained import retained
from components.sealed_secrets_key import CSI_SECRET
from components.stage import Stage
from config import ClusterConfig

OPERATOR = "https://github.com/controlplaneio-fluxcd/flux-operator/releases/download"
MANIFESTS = "oci://ghcr.io/controlplaneio-fluxcd/flux-operator-manifests"
CONTROLLERS = ["source-controller", "kustomize-controller", "helm-controller", "notification-controller"]
CSI_DRIVER = "csi.proxmox.sinextra.dev"
GIT_SECRET = "flux-system"  # noqa: S105 - a name, not a secret


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
        "sync": sync,
    }


@dataclass(frozen=True, kw_only=True)
class FluxBootstrapArgs:
    stage: Stage
    kubeconfig: Input[str]
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
        cluster = {"kubeconfig": args.kubeconfig}
        operating = args.stage.gate("G13", "flux-operator", cluster, parent=self, after=[operator])
        instance = self._instance(config, args, [operating, *self._credentials(name, config, args)])
        running = args.stage.gate("G14", "flux-instance", cluster, parent=self, after=[instance])
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
        source = {"url": str(config.flux.url), "branch": config.flux.branch, "path": config.flux.path}
        synced = stage.gate(
            "G15", "git-synced", {"kubeconfig": args.kubeconfig, **source}, parent=self, after=[running]
        )
        unsealed = stage.gate("G16", "secrets-unsealed", {"kubeconfig": args.kubeconfig}, parent=self, after=[synced])
        if config.storage.csi:
            storage = storage_target(stage, args.kubeconfig)
            stage.gate("G17", "storage", storage, parent=self, after=[unsealed])


def storage_target(stage: Stage, kubeconfig: Input[str]) -> dict[str, Any]:
    csi = stage.config.storage.csi
    assert csi is not None  # noqa: S101 - asked only where there is a storage driver
    return {
        "nodes": stage.nodes(),
        "kubeconfig": kubeconfig,
        "namespace": csi.namespace,
        "release": CSI_SECRET,
        "driver": CSI_DRIVER,
        "storage_class": csi.storage_class,
    }
