"""The ports of one machine's API, which can be moved to other addresses and other TLS rules."""

from __future__ import annotations

import logging
import ssl
from asyncio import BaseTransport
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from grpclib.const import Handler
from grpclib.protocol import H2Protocol
from grpclib.server import Server

if TYPE_CHECKING:
    from lab.talos.router import Router

_log = logging.getLogger(__name__)


class _Methods(dict[str, Handler]):
    """Every method there could be; grpclib itself answers an unknown one with a reply Go cannot read."""

    def __init__(self, known: dict[str, Handler], unknown: Callable[[str], Handler]) -> None:
        super().__init__(known)
        self._unknown = unknown

    def get(self, path: str, default: Any = None) -> Any:
        return super().get(path, default) or self._unknown(path)


class _Server(Server):
    """grpclib's own close leaves connections open; a machine that goes away does not."""

    def __init__(self, router: Router) -> None:
        super().__init__([router])
        self._mapping = _Methods(self._mapping, router.unknown)
        self._protocols: WeakSet[H2Protocol] = WeakSet()
        self._gone = False

    def _protocol_factory(self) -> H2Protocol:
        protocol = super()._protocol_factory()
        self._protocols.add(protocol)
        connect = protocol.connection_made

        def connection_made(transport: BaseTransport) -> None:
            connect(transport)
            # A handshake that began before the machine changed its rules must not outlive them.
            if self._gone:
                protocol.processor.close()

        protocol.connection_made = connection_made  # type: ignore[method-assign]  # grpclib has no hook for it
        return protocol

    def hang_up(self) -> None:
        self._gone = True
        self.close()
        for protocol in list(self._protocols):
            if hasattr(protocol, "processor"):
                protocol.processor.close()


class Listener:
    def __init__(self, router: Router, port: int) -> None:
        self._router = router
        self._port = port
        self._servers: list[_Server] = []
        self._addresses: Sequence[str] = ()
        self._context: ssl.SSLContext | None = None
        self._hidden = False

    @property
    def open(self) -> bool:
        return bool(self._servers)

    async def serve(self, addresses: Sequence[str], context: ssl.SSLContext) -> None:
        """From now on answer there, like that; whoever is connected is cut off."""
        self._addresses, self._context = addresses, context
        await self._reopen()

    async def hide(self, *, hidden: bool) -> None:
        """As if the network led elsewhere, without the machine noticing."""
        if hidden != self._hidden:
            self._hidden = hidden
            await self._reopen()

    async def close(self) -> None:
        self._context = None
        await self._reopen()

    async def _reopen(self) -> None:
        for server in self._servers:
            server.hang_up()
        self._servers = []
        if self._context is not None and not self._hidden:
            for address in self._addresses:
                await self._open(address, self._context)

    async def _open(self, address: str, context: ssl.SSLContext) -> None:
        server = _Server(self._router)
        try:
            await server.start(address, self._port, ssl=context, reuse_address=True)
        except OSError as error:
            # An address that does not exist here is one nobody can reach, as on a real network.
            _log.warning("nobody can reach %s: %s", address, error)
        else:
            self._servers.append(server)
