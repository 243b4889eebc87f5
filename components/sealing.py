"""Sealing in the format of sealed-secrets: only the controller that holds the private key can open it again."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

FINGERPRINT_ANNOTATION = "groundwork.dev/sealed-for"
SESSION_KEY_BYTES = 32
NONCE = bytes(12)
"""All zero: every session key encrypts one message only."""


@dataclass(frozen=True, kw_only=True)
class PlainSecret:
    name: str
    namespace: str
    data: Mapping[str, str]
    type: str = "Opaque"


def fingerprint(certificate: str) -> str:
    """SHA-256 of a PEM certificate, in hexadecimal."""
    return x509.load_pem_x509_certificate(certificate.encode()).fingerprint(hashes.SHA256()).hex()


def sealed_manifest(secret: PlainSecret, certificate: str) -> str:
    """The SealedSecret as JSON, which is YAML without quoting traps."""
    key = x509.load_pem_x509_certificate(certificate.encode()).public_key()
    if not isinstance(key, rsa.RSAPublicKey):
        raise TypeError("sealed-secrets seals with RSA keys only")
    # The label ties the ciphertext to one Secret, so that it cannot be renamed into another namespace.
    label = f"{secret.namespace}/{secret.name}".encode()
    encrypted = {name: _seal(value.encode(), key, label) for name, value in sorted(secret.data.items())}
    return json.dumps(_manifest(secret, encrypted, fingerprint(certificate)), indent=2) + "\n"


def _seal(plain: bytes, key: rsa.RSAPublicKey, label: bytes) -> str:
    session = os.urandom(SESSION_KEY_BYTES)
    oaep = padding.OAEP(mgf=padding.MGF1(hashes.SHA256()), algorithm=hashes.SHA256(), label=label)
    wrapped = key.encrypt(session, oaep)
    sealed = len(wrapped).to_bytes(2, "big") + wrapped + AESGCM(session).encrypt(NONCE, plain, None)
    return base64.b64encode(sealed).decode()


def _manifest(secret: PlainSecret, encrypted: Mapping[str, str], sealed_for: str) -> dict[str, Any]:
    identity = {"name": secret.name, "namespace": secret.namespace}
    return {
        "apiVersion": "bitnami.com/v1alpha1",
        "kind": "SealedSecret",
        "metadata": {**identity, "annotations": {FINGERPRINT_ANNOTATION: sealed_for}},
        "spec": {"encryptedData": dict(encrypted), "template": {"metadata": identity, "type": secret.type}},
    }
