"""Machine configurations, their one application, the etcd bootstrap, and the gates from Talos to Kubernetes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pulumiverse_talos as talos
from pulumi import ComponentResource, InvokeOutputOptions, Output, ResourceOptions

from components import kubeconfig, machine_config, questions
from components.questions import Access
from components.rollout import Rollout
from components.stage import Stage
from components.talos_identity import TalosIdentity
from config import ClusterConfig

KUBERNETES_PORT = 6443


def camel_keys(value: Any) -> Any:
    """The provider's invokes want the keys of its schema; the SDK hands them out in snake case."""
    if isinstance(value, Mapping):
        return {_camel(key): camel_keys(item) for key, item in value.items() if item is not None}
    return value


def _camel(key: str) -> str:
    head, *tail = key.split("_")
    return head + "".join(word.capitalize() for word in tail)


def installer(config: ClusterConfig, schematic_id: str) -> str:
    factory = config.talos.image_factory.split("://", 1)[-1]
    return f"{factory}/nocloud-installer/{schematic_id}:v{config.versions.talos}"


@dataclass(frozen=True, kw_only=True)
class TalosClusterArgs:
    stage: Stage
    identity: TalosIdentity
    schematic_id: Output[str]
    manifests: list[dict[str, str]] = field(default_factory=list)
    """Manifests Talos itself applies at bootstrap."""


class TalosCluster(ComponentResource):
    kubeconfig: Output[str]
    """For people: names the virtual address; secret."""
    bootstrap_kubeconfig: Output[str]
    """For the provider and the gates: names a control plane's own address; secret."""
    access: Access
    """How the gates reach this cluster."""
    talosconfig: Output[str]
    """Secret."""
    patches: Output[dict[str, list[str]]]
    """What was merged into each node's configuration; holds no secret, so a preview shows what changes."""
    digests: Output[dict[str, str]]
    """SHA-256 of each node's whole configuration."""

    def __init__(self, name: str, args: TalosClusterArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("groundwork:index:TalosCluster", name, {}, opts)
        stage, config, identity = args.stage, args.stage.config, args.identity
        self.patches = args.schematic_id.apply(
            lambda schematic: {
                node: machine_config.patches(config, node, installer(config, schematic), args.manifests)
                for node in config.nodes
            }
        )
        rendered = {node: self._render(config, identity, node) for node in config.nodes}
        self.digests = Output.unsecret(
            Output.all(**rendered).apply(lambda all_: {node: _digest(text) for node, text in all_.items()})
        )
        applied = [self._apply(config, identity, node, rendered[node]) for node in config.nodes]
        Rollout(
            f"{name}-machine-configurations",
            what="the machine configuration",
            remedy="name a node in rollout.nodes to apply it, one node at a time",
            desired=self.digests,
            rolling=list(config.rollout.nodes),
            opts=ResourceOptions(parent=self, depends_on=applied),
        )
        talos_access = identity.gate_credentials
        configured = stage.gate(questions.machines_configured(config, talos_access), parent=self, after=applied)
        bootstrap = self._bootstrap(name, config, identity, configured)
        etcd = stage.gate(questions.etcd(config, talos_access), parent=self, after=[bootstrap])
        kubelets = stage.gate(questions.kubelets(config, talos_access), parent=self, after=[bootstrap])
        issued = self._kubeconfig(name, config, identity, etcd)
        self._export(config, identity, issued)
        self._gate_kubernetes(stage, [etcd, kubelets])
        self.register_outputs({"patches": self.patches, "digests": self.digests})

    def _render(self, config: ClusterConfig, identity: TalosIdentity, node: str) -> Output[str]:
        configuration = talos.machine.get_configuration_output(
            cluster_name=config.name,
            cluster_endpoint=f"https://{config.network.vip}:{KUBERNETES_PORT}",
            machine_type=config.nodes[node].role,
            machine_secrets=identity.machine_secrets.apply(camel_keys),
            talos_version=f"v{config.versions.talos_contract}",
            kubernetes_version=config.versions.kubernetes,
            config_patches=self.patches.apply(lambda patches: patches[node]),
            docs=False,
            examples=False,
            opts=InvokeOutputOptions(parent=self),
        )
        return Output.secret(configuration.machine_configuration)

    def _apply(
        self, config: ClusterConfig, identity: TalosIdentity, node: str, configuration: Output[str]
    ) -> talos.machine.ConfigurationApply:
        # Applied once: applying again restarts kubelets, so a change reaches only the nodes named in the roll-out.
        frozen = [] if node in config.rollout.nodes else ["machineConfigurationInput"]
        return talos.machine.ConfigurationApply(
            f"{node}-configuration",
            node=str(config.nodes[node].address),
            client_configuration=identity.client,
            machine_configuration_input=configuration,
            opts=ResourceOptions(parent=self, ignore_changes=frozen),
        )

    def _bootstrap(
        self, name: str, config: ClusterConfig, identity: TalosIdentity, configured: ComponentResource
    ) -> talos.machine.Bootstrap:
        return talos.machine.Bootstrap(
            f"{name}-bootstrap",
            node=self._bootstrap_address(config),
            client_configuration=identity.client,
            # A second bootstrap would be a second etcd: nothing may ever replace this.
            opts=ResourceOptions(
                parent=self,
                depends_on=[configured],
                protect=config.protect_nodes,
                ignore_changes=["node", "endpoint"],
            ),
        )

    def _kubeconfig(
        self, name: str, config: ClusterConfig, identity: TalosIdentity, etcd: ComponentResource
    ) -> Output[str]:
        issued = talos.cluster.Kubeconfig(
            f"{name}-kubeconfig",
            node=self._bootstrap_address(config),
            client_configuration=identity.client,
            opts=ResourceOptions(parent=self, depends_on=[etcd]),
        )
        return Output.secret(issued.kubeconfig_raw)

    def _export(self, config: ClusterConfig, identity: TalosIdentity, issued: Output[str]) -> None:
        address = self._bootstrap_address(config)
        endpoints = [str(node.address) for node in config.control_planes.values()]
        nodes = [str(node.address) for node in config.nodes.values()]
        self.kubeconfig = issued
        self.bootstrap_kubeconfig = issued.apply(lambda text: kubeconfig.pointed_at(text, address))
        self.access = Access(talos=identity.gate_credentials, kubeconfig=self.bootstrap_kubeconfig)
        self.talosconfig = identity.gate_credentials.apply(
            lambda credentials: kubeconfig.talosconfig(config.name, endpoints, nodes, credentials)
        )

    def _gate_kubernetes(self, stage: Stage, after: list[ComponentResource]) -> None:
        config, access = stage.config, self.access
        api = stage.gate(questions.api(config, access), parent=self, after=after)
        stage.gate(questions.virtual_address(config, access), parent=self, after=[api])
        stage.gate(questions.nodes_registered(config, access), parent=self, after=[api])

    @staticmethod
    def _bootstrap_address(config: ClusterConfig) -> str:
        return str(config.nodes[config.talos.bootstrap_node].address)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
