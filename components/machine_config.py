"""The patches that turn Talos's generated configuration into that of one node; plain values in, plain values out.

Nothing in a patch names another node: adding or removing a node changes no configuration but its own.
"""

from __future__ import annotations

import json
from typing import Any

from config import ClusterConfig, Node

LINK = "net0"
"""The alias of a machine's only link, chosen by its MAC address."""

KUBE_PRISM_PORT = 7445
"""Where every node reaches the API server before there is a network."""

KEEP_UNPACKED_LAYERS = '[plugins."io.containerd.cri.v1.images"]\n  discard_unpacked_layers = false\n'

Patch = dict[str, Any]


def patches(config: ClusterConfig, name: str, installer: str, manifests: list[dict[str, str]]) -> list[str]:
    """Every patch of one node, in the order they are merged; two calls give the same bytes."""
    node = config.nodes[name]
    documents = [
        common_patch(config, node, installer),
        *([control_plane_patch(config, manifests)] if node.role == "controlplane" else []),
        *network_documents(config, name),
        *registry_documents(config),
        *user_patches(config, name),
    ]
    return [json.dumps(document, sort_keys=True) for document in documents]


def common_patch(config: ClusterConfig, node: Node, installer: str) -> Patch:
    return {
        "machine": {
            # By size, not by path: the kernel hands out paths in the order it finds disks.
            "install": {"image": installer, "diskSelector": {"size": f"== {node.disk}GiB"}},
            "kubelet": kubelet(config, node),
            "nodeLabels": node_labels(config, node),
            **({"nodeTaints": dict(node.taints)} if node.taints else {}),
            "certSANs": [str(config.network.vip)],
            "features": {
                "kubePrism": {"enabled": True, "port": KUBE_PRISM_PORT},
                "hostDNS": {
                    "enabled": True,
                    "forwardKubeDNSToHost": config.talos.host_dns_forward,
                    "resolveMemberNames": True,
                },
            },
            **machine_files(config),
        },
        "cluster": {
            "network": {
                "cni": {"name": "none"},
                "podSubnets": [str(config.network.pods)],
                "serviceSubnets": [str(config.network.services)],
            },
            "proxy": {"disabled": True},
            **({"externalCloudProvider": {"enabled": True}} if config.external_cloud_provider else {}),
        },
    }


def kubelet(config: ClusterConfig, node: Node) -> Patch:
    settings: Patch = {
        "nodeIP": {"validSubnets": [str(config.network.subnet)]},
        # The storage driver finds the virtual machine behind a node by this name.
        "extraArgs": {"provider-id": f"proxmox://{config.proxmox.region}/{node.vmid}"},
    }
    if config.talos.kubelet_mounts:
        settings["extraMounts"] = [
            {
                "source": mount.source,
                "destination": mount.destination,
                "type": mount.type,
                "options": list(mount.options),
            }
            for mount in config.talos.kubelet_mounts
        ]
    return settings


def node_labels(config: ClusterConfig, node: Node) -> dict[str, str]:
    return {
        "topology.kubernetes.io/region": config.proxmox.region,
        "topology.kubernetes.io/zone": config.proxmox.hosts[node.host].zone,
        **node.labels,
    }


def machine_files(config: ClusterConfig) -> Patch:
    """Spegel serves images from containerd's own store, so containerd has to keep the layers."""
    if not any(chart.name == "spegel" for chart in config.charts):
        return {}
    part = {"path": "/etc/cri/conf.d/20-customization.part", "op": "create", "content": KEEP_UNPACKED_LAYERS}
    return {"files": [part]}


def control_plane_patch(config: ClusterConfig, manifests: list[dict[str, str]]) -> Patch:
    return {
        "cluster": {
            "allowSchedulingOnControlPlanes": config.talos.allow_scheduling_on_control_planes,
            "apiServer": {"certSANs": [str(config.network.vip)]},
            "etcd": {"advertisedSubnets": [str(config.network.subnet)]},
            "coreDNS": {"disabled": not config.talos.coredns},
            **({"inlineManifests": manifests} if manifests else {}),
        }
    }


def network_documents(config: ClusterConfig, name: str) -> list[Patch]:
    """One static address on one link; no document asks for DHCP, so there is none."""
    node = config.nodes[name]
    address = f"{node.address}/{config.network.subnet.prefixlen}"
    documents = [
        _document("HostnameConfig", auto="off", hostname=name),
        _document(
            "LinkAliasConfig", name=LINK, selector={"match": f'mac(link.permanent_addr) == "{node.mac.lower()}"'}
        ),
        _document(
            "LinkConfig",
            name=LINK,
            up=True,
            mtu=config.proxmox.mtu,
            addresses=[{"address": address}],
            routes=[{"gateway": str(config.network.gateway)}],
        ),
        _document("ResolverConfig", nameservers=[{"address": str(each)} for each in config.network.nameservers]),
        _document("TimeSyncConfig", ntp={"servers": [str(server) for server in config.network.ntp]}),
    ]
    if node.role == "controlplane":
        documents.append(_document("Layer2VIPConfig", name=str(config.network.vip), link=LINK))
    return documents


def registry_documents(config: ClusterConfig) -> list[Patch]:
    return [
        _document("RegistryMirrorConfig", name=registry, endpoints=[{"url": endpoint} for endpoint in endpoints])
        for registry, endpoints in config.talos.registry_mirrors.items()
    ]


def user_patches(config: ClusterConfig, name: str) -> list[Patch]:
    """The stack's own patches, from the general to the particular; merged last, so they win."""
    own = config.talos.patches
    by_role = own.controlplane if config.nodes[name].role == "controlplane" else own.worker
    return [*own.all, *by_role, *own.nodes.get(name, [])]


def _document(kind: str, **fields: Any) -> Patch:
    return {"apiVersion": "v1alpha1", "kind": kind, **fields}
