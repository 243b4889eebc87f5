"""The client certificate of a Talos cluster, and the TLS contexts made of it."""

from __future__ import annotations

import base64
import re
import ssl
import tempfile
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Credentials:
    """All three as PEM."""

    ca: str
    certificate: str
    key: str = field(repr=False)

    @classmethod
    def from_base64(cls, *, ca: str, certificate: str, key: str) -> Credentials:
        """From the form that talosconfig files and the Talos provider use."""
        return cls(ca=_decode(ca), certificate=_decode(certificate), key=_decode(key))


def _decode(text: str) -> str:
    return base64.b64decode(text).decode()


def openssl_key(pem: str) -> str:
    """Talos labels its PKCS #8 keys by algorithm, which OpenSSL does not read."""
    return re.sub(r"-----(BEGIN|END) ED25519 PRIVATE KEY-----", r"-----\1 PRIVATE KEY-----", pem)


def load_identity(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """Give the context a certificate and key that are in memory; the standard library reads only files."""
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:  # created with mode 0600
        file.write(certificate.strip() + "\n" + openssl_key(key))
        file.flush()
        context.load_cert_chain(Path(file.name))


@lru_cache(maxsize=16)
def client_context(credentials: Credentials | None) -> ssl.SSLContext:
    """One context for all machines of a cluster; without credentials nothing is verified, as in maintenance mode."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_alpn_protocols(["h2"])
    if credentials is None:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        context.load_verify_locations(cadata=credentials.ca)
        load_identity(context, credentials.certificate, credentials.key)
    return context
