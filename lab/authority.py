"""The certificate authority that one run of the lab makes for itself."""

from __future__ import annotations

import hashlib
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import certifi
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = timedelta(days=30)
CLOCK_SKEW = timedelta(hours=1)


@dataclass(frozen=True, kw_only=True)
class Issued:
    """A server certificate and its key, as files."""

    certificate: Path
    key: Path


class Authority:
    """Kept in its directory: a second start of the same run goes on with the same authority."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.directory = directory
        self.certificate = directory / "ca.pem"
        self._key_file = directory / "ca.key"
        if not self.certificate.exists():
            self._create()
        self._key = _read_key(self._key_file)
        self._own = x509.load_pem_x509_certificate(self.certificate.read_bytes())

    def issue(self, names: Sequence[str]) -> Issued:
        """A certificate for these DNS names and addresses; the same names get the same files."""
        stem = hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]
        issued = Issued(certificate=self.directory / f"{stem}.pem", key=self.directory / f"{stem}.key")
        if not issued.certificate.exists():
            key = ec.generate_private_key(ec.SECP256R1())
            write_private(issued.key, _key_pem(key))
            leaf = self._leaf(names, key.public_key())
            issued.certificate.write_bytes(_pem(leaf) + _pem(self._own))
        return issued

    def bundle(self) -> Path:
        """The system's roots and this authority in one file, for SSL_CERT_FILE."""
        bundle = self.directory / "bundle.pem"
        bundle.write_bytes(_system_roots() + b"\n" + self.certificate.read_bytes())
        return bundle

    def _create(self) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "groundwork lab authority")])
        certificate = (
            _builder(name, key.public_key())
            .issuer_name(name)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_usage(sign_certificates=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        write_private(self._key_file, _key_pem(key))
        self.certificate.write_bytes(_pem(certificate))

    def _leaf(self, names: Sequence[str], public: ec.EllipticCurvePublicKey) -> x509.Certificate:
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:64])])
        return (
            _builder(subject, public)
            .issuer_name(self._own.subject)
            .add_extension(x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(sign_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
            .sign(self._key, hashes.SHA256())
        )


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, from its first byte on."""
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_bytes(content)


def _builder(subject: x509.Name, public: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + LIFETIME)
    )


def _usage(*, sign_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=sign_certificates,
        crl_sign=sign_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _read_key(path: Path) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError(f"{path} holds no elliptic-curve key")
    return key


def _system_roots() -> bytes:
    file = ssl.get_default_verify_paths().cafile
    return Path(file or certifi.where()).read_bytes()
