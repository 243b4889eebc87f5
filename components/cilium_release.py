"""Cilium: the CRDs it looks for at start, the release, the proof that every node has a network, and address pools."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes
from pulumi import ComponentResource, Resource, ResourceOptions

from components import cilium_values, questions
from components.questions import CILIUM_NAMESPACE, Access
from components.retained import retained
from components.rollout import Rollout
from components.stage import Stage
from config import ClusterConfig, Pool

GATEWAY_API = "https://raw.githubusercontent.com/kubernetes-sigs/gateway-api"
GATEWAY_CRDS = (
    "backendtlspolicies", "gatewayclasses", "gateways", "grpcroutes", "httproutes", "listenersets", "referencegrants",
    "tcproutes", "tlsroutes", "udproutes",
)  # fmt: skip
POOL_CRD = {"ciliumloadbalancerippools.cilium.io": ["v2"]}
ANNOUNCEMENT_CRDS: dict[str, dict[str, list[str]]] = {
    "l2": {"ciliuml2announcementpolicies.cilium.io": ["v2alpha1"]},
    "bgp": {"ciliumbgpclusterconfigs.cilium.io": ["v2"]},
}
"""Registered by the operator itself, some time after it started, and only where the feature is on."""


def gateway_crd_urls(version: str) -> list[str]:
    base = f"{GATEWAY_API}/v{version}/config/crd/standard"
    return [f"{base}/gateway.networking.k8s.io_{name}.yaml" for name in GATEWAY_CRDS]


def crd_urls(config: ClusterConfig) -> list[str]:
    gateway = gateway_crd_urls(config.versions.gateway_api) if config.cilium.gateway_api else []
    return [*gateway, *(crd.url for crd in config.crds)]


def expected_crds(config: ClusterConfig) -> dict[str, list[str]]:
    """Which versions must be served before the operator starts: it looks once and never again."""
    gateway = GATEWAY_CRDS if config.cilium.gateway_api else ()
    wanted: dict[str, list[str]] = {f"{name}.gateway.networking.k8s.io": ["v1"] for name in gateway}
    return wanted | {name: [] for crd in config.crds for name in crd.names}


def operator_crds(config: ClusterConfig) -> dict[str, list[str]]:
    return POOL_CRD | ANNOUNCEMENT_CRDS.get(config.cilium.announce, {})


def only_definitions(args: pulumi.ResourceTransformArgs) -> pulumi.ResourceTransformResult | None:
    """A list of CRDs that brings anything else along is refused: it would run before there is a network."""
    kind = args.props.get("kind") if args.custom else None
    if kind not in (None, "CustomResourceDefinition"):
        raise pulumi.RunError(f"{args.name}: a {kind} among the CRDs; name a file that holds CRDs only under `crds:`")
    return None


def pool_spec(pool: Pool) -> dict[str, Any]:
    blocks = [{"start": str(pool.span.first), "stop": str(pool.span.last)}]
    selector = {"serviceSelector": {"matchLabels": dict(pool.selector)}} if pool.selector else {}
    return {"blocks": blocks, **selector}


def digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class CiliumReleaseArgs:
    stage: Stage
    access: Access


class CiliumRelease(ComponentResource):
    values: dict[str, Any]
    """What the release was installed with."""

    def __init__(self, name: str, args: CiliumReleaseArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("groundwork:index:CiliumRelease", name, {}, opts)
        config = args.stage.config
        self.values = cilium_values.values(config)
        crds = self._crds(name, args)
        # Inline, Talos has applied CRDs and Cilium at bootstrap; the gates ask the same of it.
        installed = crds if config.cilium.install == "inline" else [self._install(name, config, crds)]
        healthy = self._gate_network(args, installed)
        self._pools(name, args, healthy)
        self.register_outputs({"values": self.values})

    def _crds(self, name: str, args: CiliumReleaseArgs) -> list[Resource]:
        config = args.stage.config
        urls = crd_urls(config)
        if not urls:
            return []
        question = questions.definitions(args.access, expected_crds(config))
        if config.cilium.install == "inline":
            return [args.stage.gate(question, parent=self, after=[])]
        definitions = kubernetes.yaml.v2.ConfigGroup(
            f"{name}-crds",
            files=urls,
            skip_await=True,
            opts=ResourceOptions.merge(retained(self), ResourceOptions(transforms=[only_definitions])),
        )
        return [args.stage.gate(question, parent=self, after=[definitions])]

    def _install(self, name: str, config: ClusterConfig, after: list[Resource]) -> Resource:
        release = self._release(config, after)
        self._record(name, config, release)
        return release

    def _release(self, config: ClusterConfig, after: list[Resource]) -> Resource:
        # A change of values restarts every agent, so it waits for a deliberate roll-out.
        frozen = [] if config.rollout.cilium and config.cilium.owner == "pulumi" else ["values", "version"]
        return kubernetes.helm.v3.Release(
            "cilium",
            name="cilium",
            chart="cilium",
            version=config.versions.cilium,
            namespace=CILIUM_NAMESPACE,
            repository_opts={"repo": config.cilium.repository},
            values=self.values,
            skip_await=True,
            opts=retained(self, after=after, ignore_changes=frozen),
        )

    def _record(self, name: str, config: ClusterConfig, release: Resource) -> None:
        desired = {"version": config.versions.cilium, **{key: digest(value) for key, value in self.values.items()}}
        Rollout(
            f"{name}-cilium",
            what="Cilium's configuration",
            remedy="set rollout.cilium to apply it; every agent restarts",
            desired=desired,
            rolling=list(desired) if config.rollout.cilium else [],
            opts=ResourceOptions(parent=self, depends_on=[release]),
        )

    def _gate_network(self, args: CiliumReleaseArgs, installed: list[Resource]) -> list[Resource]:
        stage, config = args.stage, args.stage.config
        workloads = stage.gate(questions.cilium_workloads(config, args.access), parent=self, after=installed)
        own = questions.definitions(args.access, operator_crds(config))
        return [
            stage.gate(questions.nodes_ready(config, args.access), parent=self, after=[workloads]),
            stage.gate(questions.cilium_agents(config, args.access), parent=self, after=[workloads]),
            stage.gate(questions.pod_network(config, args.access), parent=self, after=[workloads]),
            stage.gate(own, parent=self, after=[workloads], label="cilium-crds"),
        ]

    def _pools(self, name: str, args: CiliumReleaseArgs, after: list[Resource]) -> None:
        config = args.stage.config
        pools: list[Resource] = [self._pool(config, pool, after) for pool in config.lb_pools]
        if pools and config.cilium.announce == "l2":
            pools.append(self._announcement(name, after))
        args.stage.gate(questions.address_pools(config, args.access), parent=self, after=[*pools, *after])

    def _pool(self, config: ClusterConfig, pool: str, after: list[Resource]) -> Resource:
        return kubernetes.apiextensions.CustomResource(
            f"{config.name}-pool-{pool}",
            api_version="cilium.io/v2",
            kind="CiliumLoadBalancerIPPool",
            metadata={"name": pool},
            spec=pool_spec(config.lb_pools[pool]),
            opts=retained(self, after=after),
        )

    def _announcement(self, name: str, after: list[Resource]) -> Resource:
        return kubernetes.apiextensions.CustomResource(
            f"{name}-announcement",
            api_version="cilium.io/v2alpha1",
            kind="CiliumL2AnnouncementPolicy",
            metadata={"name": "groundwork"},
            spec={
                "loadBalancerIPs": True,
                "nodeSelector": {
                    "matchExpressions": [{"key": "node-role.kubernetes.io/control-plane", "operator": "DoesNotExist"}]
                },
            },
            opts=retained(self, after=after),
        )
