"""What real providers would fill in, by type."""

from __future__ import annotations

import datetime
from functools import cache
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID


@cache
def key_pair() -> tuple[str, str]:
    """A small RSA key and its certificate, as PEM."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tests")])
    begin = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(begin)
        .not_valid_after(begin + datetime.timedelta(days=3650))
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return private.decode(), certificate.public_bytes(serialization.Encoding.PEM).decode()


KUBECONFIG = """apiVersion: v1
kind: Config
clusters:
- name: tests
  cluster: {server: "https://10.25.11.10:6443", certificate-authority-data: Y2E=}
users:
- name: admin@tests
  user: {client-certificate-data: Y3J0, client-key-data: a2V5}
contexts:
- name: admin@tests
  context: {cluster: tests, user: admin@tests}
current-context: admin@tests
"""


def computed(typ: str, inputs: dict[str, Any]) -> dict[str, Any]:
    import base64

    private, certificate = key_pair()
    encoded = base64.b64encode(certificate.encode()).decode()
    table: dict[str, dict[str, Any]] = {
        "talos:machine/secrets:Secrets": {
            "clientConfiguration": {
                "caCertificate": encoded,
                "clientCertificate": encoded,
                "clientKey": "a2V5LW9mLXRoZS10ZXN0cw==",
            },
            "machineSecrets": {
                "cluster": {"id": "cluster-id", "secret": "cluster-secret"},
                "secrets": {"bootstrapToken": "token-of-the-tests", "secretboxEncryptionSecret": "box"},
                "trustdinfo": {"token": "trustd-token"},
                "certs": {
                    **{name: {"cert": "c", "key": "k"} for name in ("etcd", "k8s", "k8sAggregator", "os")},
                    "k8sServiceaccount": {"key": "k"},
                },
            },
        },
        "talos:cluster/kubeconfig:Kubeconfig": {"kubeconfigRaw": KUBECONFIG},
        "proxmoxve:user/token:Token": {"value": "groundwork-csi-infra@pve!csi=33333333-aaaa-bbbb-cccc-000000000003"},
        "tls:index/privateKey:PrivateKey": {"privateKeyPem": private},
        "tls:index/selfSignedCert:SelfSignedCert": {"certPem": certificate},
    }
    return table.get(typ, {})
