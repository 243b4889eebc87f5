"""Certificates as Talos issues them: short-lived leaves from the authorities that a machine config carries."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

SigningKey = ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | rsa.RSAPrivateKey
LIFETIME = timedelta(days=365)
CLOCK_SKEW = timedelta(minutes=10)


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A certificate and its key, both PEM."""

    certificate: bytes
    key: bytes

    def write(self, directory: Path, stem: str) -> tuple[Path, Path]:
        certificate, key = directory / f"{stem}.crt", directory / f"{stem}.key"
        write_private(certificate, self.certificate)
        write_private(key, self.key)
        return certificate, key


@dataclass(frozen=True, kw_only=True)
class CertificateAuthority:
    """A `{crt, key}` of a machine config."""

    certificate: bytes
    key: bytes

    @classmethod
    def parse(cls, encoded: dict[str, str]) -> CertificateAuthority:
        return cls(certificate=b64decode(encoded["crt"]), key=b64decode(encoded["key"]))

    def client(self, name: str, groups: Sequence[str] = ()) -> Pair:
        return self._issue(_subject(name, groups), [], [ExtendedKeyUsageOID.CLIENT_AUTH])

    def server(self, name: str, names: Sequence[str], *, key: SigningKey | None = None) -> Pair:
        """Also a client certificate: etcd dials itself with what it serves."""
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        return self._issue(_subject(name, ()), names, usages, key)

    def _issue(
        self,
        subject: x509.Name,
        names: Sequence[str],
        usages: Sequence[x509.ObjectIdentifier],
        key: SigningKey | None = None,
    ) -> Pair:
        own = x509.load_pem_x509_certificate(self.certificate)
        signer = load_key(self.key)
        key = key or ec.generate_private_key(ec.SECP256R1())
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(own.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - CLOCK_SKEW)
            .not_valid_after(now + LIFETIME)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(_authority_identifier(own, signer), critical=False)
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName([_alternative(n) for n in names]), False)
        algorithm = None if isinstance(signer, ed25519.Ed25519PrivateKey) else hashes.SHA256()
        certificate = builder.sign(signer, algorithm)
        return Pair(certificate=certificate.public_bytes(serialization.Encoding.PEM), key=key_pem(key))


def load_key(pem: bytes) -> SigningKey:
    key = serialization.load_pem_private_key(pem, password=None)
    if not isinstance(key, SigningKey):
        raise TypeError(f"a key of type {type(key).__name__} cannot sign certificates")
    return key


def key_pem(key: SigningKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def public_pem(private: bytes) -> bytes:
    """The public half of a PEM private key."""
    public = load_key(private).public_key()
    return public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def write_private(path: Path, content: bytes) -> None:
    """Replace a file by one that only its owner can read; readers see the old or the new one, never a half."""
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    fresh.touch(mode=0o600)
    fresh.write_bytes(content)
    fresh.replace(path)


def _subject(name: str, groups: Sequence[str]) -> x509.Name:
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _authority_identifier(own: x509.Certificate, signer: SigningKey) -> x509.AuthorityKeyIdentifier:
    try:
        subject = own.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    except x509.ExtensionNotFound:
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(subject)


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)
