"""One server, many names: the Host header decides which site answers, and every answer is logged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lab.request_log import RequestLog


def _up() -> None:
    return None


@dataclass(frozen=True, kw_only=True)
class Site:
    routes: Sequence[Route]
    down: Callable[[], Response | None] = field(default=_up)
    """What it answers instead while a fault has it."""


class Sites:
    def __init__(self, sites: Mapping[str, Site], log: RequestLog) -> None:
        self._sites = {host: (Starlette(routes=list(site.routes)), site.down) for host, site in sites.items()}
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise NotImplementedError(scope["type"])
        host = _host(scope)

        async def logged(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._record(scope, host, message["status"])
            await send(message)

        await self._answer(host)(scope, receive, logged)

    def _answer(self, host: str) -> ASGIApp:
        found = self._sites.get(host)
        if found is None:
            return PlainTextResponse(f"the lab has no host {host!r}", status_code=404)
        application, down = found
        return down() or application

    def _record(self, scope: Scope, host: str, status: int) -> None:
        path, method = scope["path"], scope["method"]
        write = method == "POST" and not path.endswith("/git-upload-pack")
        self._log.record("internet", method, f"{host}{path}", status, write=write)


def _host(scope: Scope) -> str:
    headers = dict(scope["headers"])
    return str(headers.get(b"host", b"").decode("latin-1").partition(":")[0].lower())
