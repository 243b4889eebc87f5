"""Serving an application as pveproxy does: TLS 1.3, and reasons in the status line."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import h11
import uvicorn
from starlette.responses import Response
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from lab.authority import Issued

_REASON = "x-lab-reason"


def with_reason(response: Response, message: str) -> Response:
    """Proxmox puts the first line of the message where HTTP has `Internal Server Error`."""
    lines = message.splitlines()
    response.headers[_REASON] = (lines[0] if lines else "").encode("ascii", "replace").decode()
    return response


class _Connection(h11.Connection):
    """Moves the reason from its header to the status line, which ASGI has no word for."""

    def send(self, event: Any) -> Any:
        return super().send(_with_status_line(event) if isinstance(event, h11.Response) else event)


def _with_status_line(response: h11.Response) -> h11.Response:
    name = _REASON.encode()
    reason = next((value for key, value in response.headers if key == name), response.reason)
    headers = [(key, value) for key, value in response.headers if key != name]
    return h11.Response(status_code=response.status_code, headers=headers, reason=reason)


class _Protocol(H11Protocol):
    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.conn = _Connection(h11.SERVER, self.config.h11_max_incomplete_event_size or 64 * 1024)


class _Server(uvicorn.Server):
    """Part of a larger process: signals are none of its business."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


def options(issued: Issued) -> dict[str, Any]:
    """What uvicorn needs to be told to answer like pveproxy."""
    return {
        "http": _Protocol,
        "ws": "none",
        "server_header": False,
        "ssl_certfile": str(issued.certificate),
        "ssl_keyfile": str(issued.key),
        "ssl_context_factory": _tls_1_3,
    }


def _tls_1_3(_: uvicorn.Config, default: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
    context = default()
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context


def server(app: ASGIApp, host: str, port: int, issued: Issued) -> uvicorn.Server:
    """Ready to `await server.serve()`; port 0 takes a free one."""
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        lifespan="off",
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=1,
        **options(issued),
    )
    return _Server(config)
