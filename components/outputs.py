"""What a stack hands out: credentials and backups as secrets, everything else in the open."""

from __future__ import annotations

import base64
from typing import Any

from cryptography import x509
from pulumi import Input, Output

from components.sealed_secrets_key import SealedSecretsKey
from components.talos_cluster import TalosCluster
from components.talos_identity import TalosIdentity
from config import ClusterConfig, Settings


def exports(
    settings: Settings, identity: TalosIdentity, control: TalosCluster, sealing: SealedSecretsKey
) -> dict[str, Input[Any]]:
    cluster = settings.cluster
    return {
        "kubeconfig": control.kubeconfig,
        "talosconfig": control.talosconfig,
        "talos_secrets_backup": identity.machine_secrets,
        "sealing_key_backup": sealing.private_key,
        "sealing_certificate": sealing.certificate,
        "sealing_fingerprint": sealing.fingerprint,
        "nodes": node_table(cluster),
        "versions": cluster.versions.model_dump(),
        "endpoints": endpoints(cluster),
        "expiry": {
            "talos_client": Output.unsecret(identity.gate_credentials["certificate"].apply(expiry_of_base64)),
            "sealing_certificate": sealing.certificate.apply(expiry),
        },
        "machine_config_digests": control.digests,
        "machine_config_patches": control.patches,
    }


def node_table(cluster: ClusterConfig) -> dict[str, dict[str, Any]]:
    return {
        name: {"role": node.role, "host": node.host, "address": str(node.address), "vmid": node.vmid}
        for name, node in cluster.nodes.items()
    }


def endpoints(cluster: ClusterConfig) -> dict[str, str]:
    return {
        "kubernetes": f"https://{cluster.network.vip}:6443",
        "proxmox": str(cluster.proxmox.endpoint),
        "git": str(cluster.flux.url),
    }


def expiry_of_base64(certificate: str) -> str:
    return expiry(base64.b64decode(certificate).decode())


def expiry(certificate: str) -> str:
    return x509.load_pem_x509_certificate(certificate.encode()).not_valid_after_utc.date().isoformat()
