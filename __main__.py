"""Bring one cluster up: the stack names it, its file describes it, and no stage begins before the last is healthy."""

import pulumi
import pulumi_command as command
import pulumi_kubernetes as kubernetes
import pulumi_proxmoxve as proxmoxve
import pulumi_tls as tls
import pulumiverse_talos as talos
from pulumi import Resource, ResourceOptions

import config
from components import cilium_manifest, cilium_values, questions
from components.charts import Charts, ChartsArgs
from components.cilium_release import CiliumRelease, CiliumReleaseArgs
from components.csi_credentials import CsiCredentials, CsiCredentialsArgs
from components.flux_bootstrap import FluxBootstrap, FluxBootstrapArgs
from components.outputs import exports
from components.prerequisites import Prerequisites, PrerequisitesArgs
from components.proxmox_nodes import ProxmoxNodes, ProxmoxNodesArgs
from components.sealed_secrets_key import SealedSecretsKey, SealedSecretsKeyArgs
from components.stage import Stage
from components.talos_cluster import TalosCluster, TalosClusterArgs
from components.talos_identity import TalosIdentity, TalosIdentityArgs
from components.unbuilt import refuse_unbuilt

settings = config.load()
cluster, secrets = settings.cluster, settings.secrets
refuse_unbuilt(cluster)
stage = Stage(config=cluster, trigger=settings.digest)
for warning in settings.warnings:
    pulumi.warn(warning)
cilium_values.check(cluster, pulumi.get_stack())
manifests = cilium_manifest.manifests(cluster)

proxmox_provider = proxmoxve.Provider(
    "proxmox",
    endpoint=str(cluster.proxmox.endpoint),
    api_token=secrets.proxmox_token,
    insecure=cluster.proxmox.insecure,
)
talos_provider = talos.Provider("talos", image_factory_url=cluster.talos.image_factory)
tls_provider = tls.Provider("tls")
command_provider = command.Provider("command")

csi_token = secrets.csi_token
if cluster.proxmox.create_csi_credentials:
    administrator = proxmoxve.Provider(
        "proxmox-administrator",
        endpoint=str(cluster.proxmox.endpoint),
        api_token=secrets.proxmox_admin_token,
        insecure=cluster.proxmox.insecure,
    )
    csi_credentials = CsiCredentials(
        cluster.name, CsiCredentialsArgs(cluster=cluster.name), ResourceOptions(providers=[administrator])
    )
    csi_token = csi_credentials.token
identity = TalosIdentity(
    cluster.name,
    TalosIdentityArgs(contract=cluster.versions.talos_contract),
    ResourceOptions(providers=[talos_provider]),
)
nodes = ProxmoxNodes(
    cluster.name,
    ProxmoxNodesArgs(stage=stage, token=secrets.proxmox_token, talos=identity.gate_credentials),
    ResourceOptions(providers=[proxmox_provider, talos_provider]),
)
control = TalosCluster(
    cluster.name,
    TalosClusterArgs(stage=stage, identity=identity, schematic_id=nodes.schematic_id, manifests=manifests),
    ResourceOptions(providers=[talos_provider], depends_on=[nodes]),
)
kubernetes_provider = kubernetes.Provider(
    "kubernetes",
    kubeconfig=control.bootstrap_kubeconfig,
    # Without it a changed kubeconfig would plan to replace everything in the cluster.
    cluster_identifier=cluster.name,
    opts=ResourceOptions(depends_on=[control]),
)
prerequisites = Prerequisites(
    cluster.name,
    PrerequisitesArgs(stage=stage, access=control.access, pull_secret=secrets.pull_secret),
    ResourceOptions(providers=[kubernetes_provider], depends_on=[control]),
)
cilium = CiliumRelease(
    cluster.name,
    CiliumReleaseArgs(stage=stage, access=control.access),
    ResourceOptions(providers=[kubernetes_provider], depends_on=[prerequisites]),
)
settled: list[Resource] = [cilium]
if cluster.charts:
    charts = Charts(
        cluster.name,
        ChartsArgs(stage=stage, access=control.access),
        ResourceOptions(providers=[kubernetes_provider], depends_on=[cilium]),
    )
    settled.append(charts)
sealing = SealedSecretsKey(
    cluster.name,
    SealedSecretsKeyArgs(
        stage=stage,
        access=control.access,
        csi_token=csi_token,
        git_token=secrets.git_token,
        certificate=secrets.sealing_certificate,
        key=secrets.sealing_key,
        # Not depends_on: the key must not hang on the cluster that it outlives.
        after=settled,
    ),
    ResourceOptions(providers=[kubernetes_provider, tls_provider, command_provider]),
)
flux = FluxBootstrap(
    cluster.name,
    FluxBootstrapArgs(stage=stage, access=control.access, git_token=secrets.git_token),
    ResourceOptions(providers=[kubernetes_provider], depends_on=[sealing]),
)
stage.gate(questions.final(cluster, control.access), after=[flux])

for name, value in exports(settings, identity, control, sealing).items():
    pulumi.export(name, value)
