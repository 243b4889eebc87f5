"""Why a request did not give an answer, in words an operator can act on."""

from __future__ import annotations

import errno
import ssl
from collections.abc import Iterator

NOT_YET_VALID, HOSTNAME, ADDRESS = 9, 62, 64
"""OpenSSL's verification results that time or a later certificate can mend."""
REFUSED_ALERTS = ("certificate required", "bad certificate", "unknown ca", "certificate unknown", "unknown_ca")


class TroubleError(Exception):
    """No answer, or not one to build on."""

    def __init__(self, observed: str, cause: str = "", *, hopeless: bool = False) -> None:
        super().__init__(observed)
        self.observed = observed
        self.cause = cause
        self.hopeless = hopeless
        """Waiting cannot help."""


def chain(error: BaseException) -> Iterator[BaseException]:
    """The error and everything that led to it."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def explain(error: BaseException, where: str) -> TroubleError:
    """Turn a transport's error into trouble; `where` is the address that was asked."""
    for link in chain(error):
        found = _known(link, where)
        if found:
            return found
    text = str(error) or type(error).__name__
    return TroubleError(f"{where}: {text.splitlines()[0]}")


def _known(error: BaseException, where: str) -> TroubleError | None:
    if isinstance(error, ssl.SSLCertVerificationError):
        return _unverified(error, where)
    if isinstance(error, ssl.SSLError):
        return _alert(error, where)
    if isinstance(error, TimeoutError) or "Timeout" in type(error).__name__:
        return TroubleError(f"{where}: no answer in time", "powered off, wrong VLAN, or a firewall in between")
    if isinstance(error, OSError) and error.errno is not None:
        return _socket(error, where)
    return None


def _unverified(error: ssl.SSLCertVerificationError, where: str) -> TroubleError:
    reason = error.verify_message
    if error.verify_code in (HOSTNAME, ADDRESS):
        return TroubleError(f"{where}: its certificate is not for this address ({reason})", "the certificate's SANs")
    if error.verify_code == NOT_YET_VALID:
        return TroubleError(f"{where}: its certificate is not valid yet ({reason})", "clocks differ: look at time sync")
    cause = "another cluster answers at this address, or it was installed with other secrets"
    return TroubleError(f"{where}: its certificate is not signed by the expected CA ({reason})", cause, hopeless=True)


def _alert(error: ssl.SSLError, where: str) -> TroubleError:
    text = str(error.reason or error).replace("_", " ").lower()
    if any(alert in text for alert in REFUSED_ALERTS):
        cause = "these credentials belong to another cluster, or have expired"
        return TroubleError(f"{where}: it refused our client certificate ({text})", cause, hopeless=True)
    return TroubleError(f"{where}: TLS failed ({text})")


def _socket(error: OSError, where: str) -> TroubleError:
    if error.errno == errno.ECONNREFUSED:
        return TroubleError(f"{where}: connection refused", "the machine is up, the service is not (yet)")
    if error.errno in (errno.EHOSTUNREACH, errno.ENETUNREACH):
        return TroubleError(f"{where}: unreachable", "powered off, wrong VLAN, or no route to it")
    return TroubleError(f"{where}: {error.strerror or error}")
