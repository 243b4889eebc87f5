"""Ed25519 authorities and certificates as Talos makes them, for tests."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from talos_api.credentials import Credentials


@dataclass(frozen=True, kw_only=True)
class Identity:
    certificate: str
    key: str


def talos_pem(key: Ed25519PrivateKey) -> str:
    """With the label Talos writes."""
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return pem.replace("PRIVATE KEY", "ED25519 PRIVATE KEY")


class TestAuthority:
    __test__ = False

    def __init__(self, organization: str = "talos") -> None:
        self._key = Ed25519PrivateKey.generate()
        self._name = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization)])
        builder = self._builder(self._name, self._key).add_extension(x509.BasicConstraints(True, None), critical=True)
        self.certificate = builder.sign(self._key, None).public_bytes(Encoding.PEM).decode()
        self.key = talos_pem(self._key)

    def _builder(self, subject: x509.Name, key: Ed25519PrivateKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(days=1))
        )

    def server(self, address: str) -> Identity:
        key = Ed25519PrivateKey.generate()
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
        signed = self._builder(x509.Name([]), key).add_extension(names, False).add_extension(usage, False)
        pem = signed.sign(self._key, None).public_bytes(Encoding.PEM).decode()
        return Identity(certificate=pem, key=talos_pem(key))

    def credentials(self, role: str = "os:admin") -> Credentials:
        key = Ed25519PrivateKey.generate()
        subject = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, role)])
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
        signed = self._builder(subject, key).add_extension(usage, False).sign(self._key, None)
        pem = signed.public_bytes(Encoding.PEM).decode()
        return Credentials(ca=self.certificate, certificate=pem, key=talos_pem(key))
