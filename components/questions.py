"""What every gate asks, and of whom: one function a gate, shared by the stages, the last gate and the doctor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pulumi import Input

from config import ClusterConfig

CILIUM_NAMESPACE = "kube-system"
CSI_DRIVER = "csi.proxmox.sinextra.dev"
CSI_RELEASE = "proxmox-csi-plugin"
OLDEST_PROXMOX = "8.4"
"""The first release whose storages know the content type `import`."""

PRIVILEGES = {
    "/": ["Sys.Audit", "Sys.Modify"],
    "/vms": [
        "VM.Allocate", "VM.Audit", "VM.Config.CDROM", "VM.Config.CPU", "VM.Config.Cloudinit", "VM.Config.Disk",
        "VM.Config.HWType", "VM.Config.Memory", "VM.Config.Network", "VM.Config.Options", "VM.GuestAgent.Audit",
        "VM.PowerMgmt",
    ],
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Question:
    gate: str
    """Its name in the catalogue of gates."""
    probe: str
    target: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Access:
    """Credentials for the machines and for the cluster on them; outputs in the program, plain text in the doctor."""

    talos: Input[Mapping[str, str]]
    kubeconfig: Input[str]


def node_refs(config: ClusterConfig, role: str | None = None) -> list[dict[str, Any]]:
    """The nodes as gates know them."""
    return [
        {"name": name, "address": str(node.address), "vmid": node.vmid, "host": node.host, "role": node.role}
        for name, node in config.nodes.items()
        if role in (None, node.role)
    ]


def preflight(config: ClusterConfig, token: Input[str]) -> Question:
    """Everything a missing piece of which would stop the machines half-way."""
    storage = config.proxmox.storage
    allocate = ["Datastore.AllocateSpace", "Datastore.Audit"]
    target = {
        "endpoint": str(config.proxmox.endpoint),
        "token": token,
        "insecure": config.proxmox.insecure,
        "ca": config.proxmox.ca,
        "hosts": sorted({node.host for node in config.nodes.values()}),
        "storages": [{"name": storage.images, "content": "import"}, {"name": storage.disks, "content": "images"}],
        "bridges": [config.proxmox.bridge],
        "vms": [{"vmid": node.vmid, "name": name, "host": node.host} for name, node in config.nodes.items()],
        "images": [f"{config.talos.image_factory}/versions"],
        "minimum_version": OLDEST_PROXMOX,
        "privileges": {
            **PRIVILEGES,
            f"/storage/{storage.disks}": allocate,
            f"/storage/{storage.images}": [*allocate, "Datastore.Allocate", "Datastore.AllocateTemplate"],
            f"/sdn/zones/localnetwork/{config.proxmox.bridge}": ["SDN.Use"],
        },
    }
    return Question(gate="GP", probe="proxmox-preflight", target=target)


def machines_answer(config: ClusterConfig, talos: Input[Mapping[str, str]]) -> Question:
    return Question(gate="G1", probe="talos-api", target={"nodes": node_refs(config), "talos": talos})


def machines_configured(config: ClusterConfig, talos: Input[Mapping[str, str]]) -> Question:
    return Question(gate="G2", probe="talos-configured", target={"nodes": node_refs(config), "talos": talos})


def etcd(config: ClusterConfig, talos: Input[Mapping[str, str]]) -> Question:
    return Question(gate="G3", probe="etcd", target={"nodes": node_refs(config, "controlplane"), "talos": talos})


def kubelets(config: ClusterConfig, talos: Input[Mapping[str, str]]) -> Question:
    target = {
        "nodes": node_refs(config),
        "talos": talos,
        "talos_version": config.versions.talos,
        "kubernetes_version": config.versions.kubernetes,
        "endpoint": str(config.network.vip),
    }
    return Question(gate="G4", probe="kubelets", target=target)


def api(config: ClusterConfig, access: Access) -> Question:
    target = {"nodes": node_refs(config, "controlplane"), "kubeconfig": access.kubeconfig}
    return Question(gate="G5", probe="kube-api", target=target)


def virtual_address(config: ClusterConfig, access: Access) -> Question:
    target = {"vip": str(config.network.vip), "kubeconfig": access.kubeconfig}
    return Question(gate="G6", probe="vip", target=target)


def nodes_registered(config: ClusterConfig, access: Access) -> Question:
    return Question(gate="G7", probe="nodes-registered", target=_everyone(config, access))


def prerequisites(
    access: Access,
    namespaces: Sequence[str],
    secrets: Sequence[tuple[str, str]],
    config_maps: Sequence[tuple[str, str]],
) -> Question:
    target = {
        "kubeconfig": access.kubeconfig,
        "namespaces": sorted(namespaces),
        "secrets": [{"namespace": namespace, "name": name} for namespace, name in secrets],
        "configmaps": [{"namespace": namespace, "name": name} for namespace, name in config_maps],
    }
    return Question(gate="G8b", probe="prerequisites", target=target)


def definitions(access: Access, versions: Mapping[str, Sequence[str]]) -> Question:
    """That each CRD is established and serves the versions asked for; no version asks for none in particular."""
    crds = [{"name": name, "versions": list(served)} for name, served in versions.items()]
    return Question(gate="G8", probe="crds", target={"kubeconfig": access.kubeconfig, "crds": crds})


def cilium_workloads(config: ClusterConfig, access: Access) -> Question:
    target = {**_everyone(config, access), "namespace": CILIUM_NAMESPACE}
    return Question(gate="G9", probe="cilium-workloads", target=target)


def nodes_ready(config: ClusterConfig, access: Access) -> Question:
    return Question(gate="G10", probe="nodes-ready", target=_everyone(config, access))


def cilium_agents(config: ClusterConfig, access: Access) -> Question:
    target = {**_everyone(config, access), "namespace": CILIUM_NAMESPACE}
    return Question(gate="G11", probe="cilium-agents", target=target)


def cloud_provider(config: ClusterConfig, access: Access) -> Question:
    return Question(gate="G11b", probe="cloud-provider", target=_everyone(config, access))


def pod_network(config: ClusterConfig, access: Access) -> Question:
    target = {
        **_everyone(config, access),
        "talos": access.talos,
        "pod_cidr": str(config.network.pods),
        "native_routing_cidr": str(config.native_routing_cidr),
        "cluster_name": config.name,
        "cluster_id": config.cilium.id,
    }
    return Question(gate="G13a", probe="pod-network", target=target)


def address_pools(config: ClusterConfig, access: Access) -> Question:
    target = {
        "kubeconfig": access.kubeconfig,
        "pools": sorted(config.lb_pools),
        "gateway_class": "cilium" if config.cilium.gateway_api else None,
    }
    return Question(gate="G12c", probe="lb-pools", target=target)


def dns(access: Access, namespace: str, deployment: str) -> Question:
    target = {"kubeconfig": access.kubeconfig, "namespace": namespace, "deployment": deployment}
    return Question(gate="G12a", probe="dns", target=target)


def sealing_key(config: ClusterConfig, access: Access, fingerprint: Input[str]) -> Question:
    target = {
        "kubeconfig": access.kubeconfig,
        "namespace": config.sealing.namespace,
        "name": config.sealing.key_name,
        "fingerprint": fingerprint,
    }
    return Question(gate="G12", probe="sealing-key", target=target)


def sealed_files(
    config: ClusterConfig, paths: Sequence[str], fingerprint: Input[str], token: Input[str] | None
) -> Question:
    target = {
        "files": [{"path": path, "fingerprint": fingerprint} for path in paths],
        "root": ".",
        "url": str(config.flux.url),
        "branch": config.flux.branch,
        "token": token,
        "publish": config.sealing.publish,
    }
    return Question(gate="G12b", probe="sealed-files", target=target)


def flux_operator(access: Access) -> Question:
    return Question(gate="G13", probe="flux-operator", target={"kubeconfig": access.kubeconfig})


def flux_instance(access: Access) -> Question:
    return Question(gate="G14", probe="flux-instance", target={"kubeconfig": access.kubeconfig})


def git_synced(config: ClusterConfig, access: Access) -> Question:
    source = {"url": str(config.flux.url), "branch": config.flux.branch, "path": config.flux.path}
    return Question(gate="G15", probe="git-synced", target={"kubeconfig": access.kubeconfig, **source})


def secrets_unsealed(access: Access) -> Question:
    return Question(gate="G16", probe="secrets-unsealed", target={"kubeconfig": access.kubeconfig})


def storage(config: ClusterConfig, access: Access) -> list[Question]:
    """Asked only where there is a storage driver."""
    csi = config.storage.csi
    if csi is None:
        return []
    target = {
        **_everyone(config, access),
        "namespace": csi.namespace,
        "release": CSI_RELEASE,
        "driver": CSI_DRIVER,
        "storage_class": csi.storage_class,
    }
    return [Question(gate="G17", probe="storage", target=target)]


def helm_releases(access: Access) -> Question:
    return Question(gate="G18", probe="helm-releases", target={"kubeconfig": access.kubeconfig})


def once_more(config: ClusterConfig, access: Access) -> list[Question]:
    """What could have broken while something else was being built."""
    return [
        kubelets(config, access.talos),
        cilium_workloads(config, access),
        nodes_ready(config, access),
        cilium_agents(config, access),
        git_synced(config, access),
        secrets_unsealed(access),
        *storage(config, access),
        helm_releases(access),
    ]


def final(config: ClusterConfig, access: Access) -> Question:
    gates = [{"gate": each.gate, "probe": each.probe, "target": each.target} for each in once_more(config, access)]
    return Question(gate="G18", probe="final", target={"gates": gates})


def _everyone(config: ClusterConfig, access: Access) -> dict[str, Any]:
    return {"nodes": node_refs(config), "kubeconfig": access.kubeconfig}
