"""Certificates of a machine's API: self-signed in maintenance mode, of the cluster's CA afterwards."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from talos_api.credentials import openssl_key

LIFETIME = datetime.timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class Authority:
    """PEM, as it stands in a machine config."""

    certificate: str
    key: str


@dataclass(frozen=True, kw_only=True)
class Identity:
    certificate: str
    key: str


def new_authority(organization: str) -> Authority:
    key = Ed25519PrivateKey.generate()
    name = _name(organization)
    builder = _builder(name, name, key).add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    return Authority(certificate=_pem(builder.sign(key, None)), key=_key_pem(key))


def issue(authority: Authority, names: Sequence[str]) -> Identity:
    """A server certificate for these addresses and names."""
    ca = x509.load_pem_x509_certificate(authority.certificate.encode())
    signer = load_pem_private_key(openssl_key(authority.key).encode(), None)
    if not isinstance(signer, Ed25519PrivateKey):
        raise TypeError("machine.ca is not an Ed25519 key")
    key = Ed25519PrivateKey.generate()
    builder = _builder(x509.Name([]), ca.subject, key)
    builder = builder.add_extension(x509.SubjectAlternativeName([_general(name) for name in names]), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    return Identity(certificate=_pem(builder.sign(signer, None)), key=_key_pem(key))


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _name(organization: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization)])


def _builder(subject: x509.Name, issuer: x509.Name, key: Ed25519PrivateKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return x509.CertificateBuilder(
        issuer_name=issuer,
        subject_name=subject,
        public_key=key.public_key(),
        serial_number=x509.random_serial_number(),
        not_valid_before=now - datetime.timedelta(minutes=5),
        not_valid_after=now + LIFETIME,
    )


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode()


def _key_pem(key: Ed25519PrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
