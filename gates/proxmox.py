"""A small read-only client of the Proxmox VE API."""

from __future__ import annotations

import re
import ssl
from typing import Any

import httpx

from gates.session import ATTEMPT
from gates.trouble import TroubleError, explain

DENIED = 403
_PERMISSION = re.compile(r"Permission check failed \((?P<path>[^,]+), *(?P<privileges>[^)]+)\)")


class DeniedError(TroubleError):
    """The token may not ask this."""


class Proxmox:
    """Asks with an API token; trusts the system's roots, or one CA, or anything."""

    def __init__(self, endpoint: str, token: str, *, insecure: bool = False, ca: str | None = None) -> None:
        self.endpoint = endpoint.rstrip("/")
        self._http = httpx.AsyncClient(
            base_url=f"{self.endpoint}/api2/json",
            headers={"Authorization": f"PVEAPIToken={token}"},
            verify=trust(insecure=insecure, ca=ca),
            trust_env=False,
            timeout=ATTEMPT,
        )

    async def get(self, path: str, /, **query: str) -> Any:
        """The answer's data, or TroubleError."""
        try:
            answer = await self._http.get(path, params=query)
        except httpx.HTTPError as error:
            raise _unreachable(explain(error, self.endpoint)) from None
        if not answer.is_success:
            raise refused(answer, self.endpoint)
        return answer.json()["data"]

    async def close(self) -> None:
        await self._http.aclose()


def trust(*, insecure: bool, ca: str | None) -> ssl.SSLContext:
    """The default context reads SSL_CERT_FILE, as everything else that runs here does."""
    context = ssl.create_default_context(cadata=ca)
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def refused(answer: httpx.Response, where: str) -> TroubleError:
    reason = _reason(answer)
    told = f"{where}: {answer.request.url.path} answered {answer.status_code} {reason}".rstrip()
    if answer.status_code == 401:
        cause = "the API token is wrong, expired, or was removed: pveum user token list <user>"
        return TroubleError(told, cause, hopeless=True)
    if answer.status_code == DENIED:
        return DeniedError(told, _lacking(reason), hopeless=True)
    return TroubleError(told, "Proxmox itself is in trouble: look at its journal and at the storage")


def _reason(answer: httpx.Response) -> str:
    try:
        told = answer.json().get("message")
    except (ValueError, AttributeError):
        told = None
    return str(told or answer.reason_phrase).strip()


def _lacking(reason: str) -> str:
    found = _PERMISSION.search(reason)
    return f"the token lacks {found['privileges']} on {found['path']}" if found else "the token lacks a privilege"


def _unreachable(trouble: TroubleError) -> TroubleError:
    if not trouble.hopeless:
        return trouble
    cause = "its certificate is not one this machine trusts: set proxmox.ca, or proxmox.insecure for a lab"
    return TroubleError(trouble.observed, cause, hopeless=True)
