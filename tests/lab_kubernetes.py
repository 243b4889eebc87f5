"""Machine configs and pods made by hand, for the tests of the Kubernetes emulator."""

from __future__ import annotations

import datetime
from base64 import b64encode
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from lab.kubernetes import Node

POD_SUBNET = "10.244.0.0/16"


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    form = serialization.PrivateFormat.TraditionalOpenSSL
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


def authority(name: str) -> dict[str, str]:
    """A `{crt, key}` as `talosctl gen secrets` writes it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=3650))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    return {"crt": b64encode(pem).decode(), "key": b64encode(key_pem(key)).decode()}


def machine_config(kind: str = "controlplane", **cluster: Any) -> dict[str, Any]:
    service_account = ec.generate_private_key(ec.SECP256R1())
    return {
        "version": "v1alpha1",
        "machine": {
            "type": kind,
            "kubelet": {"image": "ghcr.io/siderolabs/kubelet:v1.36.4"},
            "features": {"kubePrism": {"enabled": True, "port": 7445}},
            "install": {"image": "factory.talos.dev/installer/376567988ad370138ad8b2698212367b:v1.13.9"},
        },
        "cluster": {
            "clusterName": "lab",
            "controlPlane": {"endpoint": "https://10.77.0.10:6443"},
            "ca": authority("kubernetes"),
            "aggregatorCA": authority("front-proxy"),
            "etcd": {"ca": authority("etcd")},
            "serviceAccount": {"key": b64encode(key_pem(service_account)).decode()},
            "secretboxEncryptionSecret": b64encode(b"k" * 32).decode(),
            "network": {"podSubnets": [POD_SUBNET], "serviceSubnets": ["10.245.0.0/16"], "cni": {"name": "none"}},
            "proxy": {"disabled": True},
            "apiServer": {"certSANs": ["10.77.0.10"]},
            **cluster,
        },
    }


def node(name: str = "cp-1", address: str = "127.0.0.11", role: str = "controlplane", **changes: Any) -> Node:
    config = changes.pop("config", None) or machine_config(role)
    return Node(name=name, address=address, role=role, vmid=changes.pop("vmid", 101), config=config, **changes)


def agent_pod(**changes: Any) -> dict[str, Any]:
    """The parts of a Cilium agent's pod that decide whether it can run on Talos."""
    environment = [
        {"name": "KUBERNETES_SERVICE_HOST", "value": "localhost"},
        {"name": "KUBERNETES_SERVICE_PORT", "value": "7445"},
    ]
    capabilities = {"add": ["CHOWN", "NET_ADMIN", "SYS_ADMIN"], "drop": ["ALL"]}
    agent = {
        "name": "cilium-agent",
        "image": "quay.io/cilium/cilium:v1.20.1",
        "env": environment,
        "securityContext": {"capabilities": capabilities},
    }
    spec: dict[str, Any] = {
        "hostNetwork": True,
        "containers": [agent],
        "initContainers": [{"name": "config", "image": "quay.io/cilium/cilium:v1.20.1", "env": environment}],
        "volumes": [{"name": "config", "configMap": {"name": "cilium-config"}}],
        **changes,
    }
    metadata = {"name": "cilium-x", "namespace": "kube-system", "uid": "u1", "labels": {"k8s-app": "cilium"}}
    return {"metadata": metadata, "spec": spec}


CILIUM_CONFIG = {
    "ipam": "kubernetes",
    "routing-mode": "native",
    "ipv4-native-routing-cidr": POD_SUBNET,
    "kube-proxy-replacement": "true",
}
