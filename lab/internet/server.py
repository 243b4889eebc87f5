"""An HTTPS server inside somebody else's event loop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from lab.authority import Issued


class Server(uvicorn.Server):
    """Leaves the process's signals to the process and says when it accepts connections."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.accepting = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.accepting.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def https_server(application: ASGIApp, issued: Issued) -> Server:
    config = uvicorn.Config(
        application,
        ssl_certfile=issued.certificate,
        ssl_keyfile=issued.key,
        log_config=None,
        access_log=False,
        lifespan="off",
    )
    return Server(config)
