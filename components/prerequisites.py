"""What has to be in the cluster before anything is installed: namespaces, pull secrets, settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi_kubernetes as kubernetes
from pulumi import ComponentResource, Output, Resource, ResourceOptions

from components import questions
from components.questions import Access
from components.retained import retained
from components.stage import Stage
from config import ClusterConfig

SETTINGS = "cluster-settings"
PULL_SECRET = "registry-pull"  # noqa: S105 - a name, not a secret


def namespaces(config: ClusterConfig) -> dict[str, str]:
    """Pod-security level by namespace."""
    levels = {config.flux.namespace: "restricted"}
    if config.storage.csi:
        # The storage driver's node plugin mounts volumes on the host.
        levels[config.storage.csi.namespace] = "privileged"
    for chart in config.charts:
        levels.setdefault(chart.namespace, "privileged")
    levels |= {name: namespace.pod_security for name, namespace in config.namespaces.items()}
    return {name: level for name, level in levels.items() if name != "kube-system"}


def cluster_settings(config: ClusterConfig) -> dict[str, str]:
    """The values Flux substitutes into the tree: made from the stack file, so Git cannot disagree with it."""
    settings = {
        "CLUSTER_NAME": config.name,
        "CLUSTER_ID": config.cilium.id,
        "POD_CIDR": config.network.pods,
        "SERVICE_CIDR": config.network.services,
        "NODE_CIDR": config.network.subnet,
        "CONTROL_PLANE_VIP": config.network.vip,
        "STORAGE_ROLE": config.storage.role,
        "PROXMOX_REGION": config.proxmox.region,
        "SEALED_SECRETS_VERSION": config.versions.sealed_secrets,
        "PROXMOX_CSI_VERSION": config.versions.proxmox_csi,
        "SEALING_NAMESPACE": config.sealing.namespace,
        **{f"{name.upper()}_IP": address for name, address in config.lb_addresses.items()},
        "CSI": switch(config.storage.csi is not None),
        "GATEWAY": switch(config.cilium.gateway_api and "gateway" in config.lb_addresses),
        "BGP": switch(config.cilium.announce == "bgp"),
        **storage_settings(config),
        **bgp_settings(config),
    }
    return {key: str(value) for key, value in sorted(settings.items())}


def switch(on: bool) -> str:
    """The tree turns pieces on and off by these words."""
    return "enabled" if on else "disabled"


def storage_settings(config: ClusterConfig) -> dict[str, str]:
    csi = config.storage.csi
    if csi is None:
        return {}
    return {"CSI_STORAGE": csi.storage, "CSI_STORAGE_CLASS": csi.storage_class, "CSI_NAMESPACE": csi.namespace}


def bgp_settings(config: ClusterConfig) -> dict[str, str]:
    bgp = config.cilium.bgp
    if bgp is None:
        return {}
    peer = bgp.peers[0]
    return {
        "BGP_LOCAL_ASN": str(bgp.local_asn),
        "BGP_PEER_ASN": str(peer.asn),
        "BGP_PEER_ADDRESS": str(peer.address),
    }


@dataclass(frozen=True, kw_only=True)
class PrerequisitesArgs:
    stage: Stage
    access: Access
    pull_secret: Output[str] | None = None
    """A .dockerconfigjson for the namespaces that ask for it."""


class Prerequisites(ComponentResource):
    def __init__(self, name: str, args: PrerequisitesArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("groundwork:index:Prerequisites", name, {}, opts)
        config = args.stage.config
        levels = namespaces(config)
        created = {
            namespace: kubernetes.core.v1.Namespace(
                namespace,
                metadata={"name": namespace, "labels": {"pod-security.kubernetes.io/enforce": level}},
                opts=retained(self),
            )
            for namespace, level in levels.items()
        }
        settings = kubernetes.core.v1.ConfigMap(
            SETTINGS,
            metadata={"name": SETTINGS, "namespace": config.flux.namespace},
            data=cluster_settings(config),
            opts=retained(self, after=[created[config.flux.namespace]]),
        )
        pulls = self._pull_secrets(args, created)
        question = questions.prerequisites(
            args.access, list(levels), [(each, PULL_SECRET) for each in pulls], [(config.flux.namespace, SETTINGS)]
        )
        args.stage.gate(question, parent=self, after=[*created.values(), settings, *pulls.values()])
        self.register_outputs({})

    def _pull_secrets(self, args: PrerequisitesArgs, created: Mapping[str, Resource]) -> dict[str, Resource]:
        wanted = [name for name, namespace in args.stage.config.namespaces.items() if namespace.pull_secret]
        if args.pull_secret is None:
            return {}
        return {
            namespace: kubernetes.core.v1.Secret(
                f"{namespace}-{PULL_SECRET}",
                metadata={"name": PULL_SECRET, "namespace": namespace},
                type="kubernetes.io/dockerconfigjson",
                string_data={".dockerconfigjson": args.pull_secret},
                opts=retained(self, after=[created[namespace]]),
            )
            for namespace in wanted
        }
