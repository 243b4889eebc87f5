"""What can go wrong between a client and a machine, told apart by what can be done about it."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Iterator
from enum import StrEnum

from grpclib.const import Status
from grpclib.exceptions import GRPCError, StreamTerminatedError


class Reason(StrEnum):
    UNREACHABLE = "unreachable"
    """Nothing answers, or the connection broke."""
    UNTRUSTED = "untrusted"
    """The machine's certificate is not signed by our CA."""
    REFUSED = "refused"
    """The machine refused our certificate, or that we have none."""
    TIMEOUT = "timeout"
    STATUS = "status"
    """The machine answered with an error status."""


class TalosError(Exception):
    def __init__(self, reason: Reason, message: str, status: Status | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.status = status


# OpenSSL's names of the TLS alerts a server sends about the client's certificate.
_CERTIFICATE_ALERTS = (
    "CERTIFICATE_REQUIRED",
    "CERTIFICATE_EXPIRED",
    "CERTIFICATE_UNKNOWN",
    "BAD_CERTIFICATE",
    "UNKNOWN_CA",
    "DECRYPT_ERROR",  # signed by another CA of the same name
)


def _is_certificate_alert(text: str) -> bool:
    spelled = text.upper().replace(" ", "_")
    return "ALERT" in spelled and any(alert in spelled for alert in _CERTIFICATE_ALERTS)


def _from_grpc(error: GRPCError) -> TalosError:
    reason = Reason.TIMEOUT if error.status is Status.DEADLINE_EXCEEDED else Reason.STATUS
    return TalosError(reason, error.message or error.status.name, error.status)


def _from_connection(error: OSError | StreamTerminatedError) -> TalosError:
    text = str(error) or type(error).__name__
    return TalosError(Reason.REFUSED if _is_certificate_alert(text) else Reason.UNREACHABLE, text)


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Raise every failure of the transport as TalosError."""
    try:
        yield
    except GRPCError as error:
        raise _from_grpc(error) from error
    except ssl.SSLCertVerificationError as error:
        raise TalosError(Reason.UNTRUSTED, error.verify_message or str(error)) from error
    except TimeoutError as error:
        raise TalosError(Reason.TIMEOUT, "no answer in time") from error
    except (OSError, StreamTerminatedError) as error:
        raise _from_connection(error) from error
