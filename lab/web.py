"""Web servers inside the lab's one event loop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.types import ASGIApp


class Server(uvicorn.Server):
    """Signals belong to the world, which stops its servers itself."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve(app: ASGIApp, sockets: Sequence[socket.socket], **options: Any) -> None:
    """Answer on sockets that listen already, until cancelled."""
    config = uvicorn.Config(app, log_level="warning", lifespan="off", timeout_graceful_shutdown=1, **options)
    server = Server(config)
    task = asyncio.create_task(server.serve(list(sockets)))
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        server.should_exit = server.force_exit = True
        await task
        raise


def listen(address: str, port: int) -> socket.socket:
    """A listening socket: from here on clients wait instead of being refused."""
    listener = socket.socket(socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, port))
    listener.listen(512)
    return listener
