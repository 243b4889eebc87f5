"""A TCP listener that hands every connection on to the one API server."""

from __future__ import annotations

import asyncio
import contextlib

CHUNK = 1 << 16


class Forwarder:
    def __init__(self, host: str, port: int, target: int) -> None:
        self.host = host
        self.port = port
        self.target = target
        """A port on loopback."""
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def open(self) -> bool:
        return self._server is not None

    async def start(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(self._accept, self.host, self.port, reuse_address=True)

    async def stop(self) -> None:
        """Refuse new connections and cut those that are open, as a machine does when it goes."""
        if self._server is None:
            return
        self._server.close()
        self._server = None
        connections = list(self._connections)
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None:
            return
        self._connections.add(task)
        try:
            await self._relay(reader, writer)
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            self._connections.discard(task)
            with contextlib.suppress(OSError):
                writer.close()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            return
        try:
            await asyncio.gather(_copy(reader, inner_writer), _copy(inner_reader, writer))
        finally:
            inner_writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while chunk := await reader.read(CHUNK):
            writer.write(chunk)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
