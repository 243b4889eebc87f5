"""Server-side TLS as Talos does it: no client certificate in maintenance mode, a verified one ever after."""

from __future__ import annotations

import ssl

from talos_api.credentials import load_identity


class AlertingSSLObject(ssl.SSLObject):
    """Lets the alert of a failed handshake reach the peer.

    asyncio drops a connection whose handshake failed without sending what OpenSSL has to say about it. Asking for
    more input first makes it send that; the failure itself is raised on the next turn.
    """

    _failure: ssl.SSLError | None = None

    def do_handshake(self) -> None:
        if self._failure:
            raise self._failure
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            self._failure = error
            raise ssl.SSLWantReadError from error


def server_context(certificate: str, key: str, client_ca: str | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_alpn_protocols(["h2"])
    context.sslobject_class = AlertingSSLObject
    load_identity(context, certificate, key)
    if client_ca is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=client_ca)
    return context
