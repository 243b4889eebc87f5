"""One connection to one machine, made on the first call, kept, and made again when it was lost."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from types import TracebackType
from typing import Self, TypeVar

from google.protobuf.message import Message
from grpclib.client import Channel, Handler, UnaryStreamMethod, UnaryUnaryMethod
from grpclib.protocol import H2Protocol

from talos_api.credentials import Credentials, client_context
from talos_api.errors import translated

PORT = 50000

RequestT = TypeVar("RequestT", bound=Message)
ReplyT = TypeVar("ReplyT", bound=Message)


class _TellingProtocol(H2Protocol):
    """Keeps why a connection was lost: with TLS 1.3 a refused certificate shows only after the handshake."""

    def connection_lost(self, exc: BaseException | None) -> None:
        self.processor.close(reason=f"connection lost: {exc}" if exc else "connection lost")


class _TellingChannel(Channel):
    def _protocol_factory(self) -> H2Protocol:
        return _TellingProtocol(Handler(), self._config, self._h2_config)


class Connection:
    def __init__(self, address: str, credentials: Credentials | None, *, port: int, timeout: float) -> None:
        self.address = address
        self.timeout = timeout
        self.channel: Channel = _TellingChannel(address, port, ssl=client_context(credentials))

    async def call(
        self, method: UnaryUnaryMethod[RequestT, ReplyT], request: RequestT, *, timeout: float | None = None
    ) -> ReplyT:
        with translated():
            return await method(request, timeout=timeout or self.timeout)

    async def collect(self, method: UnaryStreamMethod[RequestT, ReplyT], request: RequestT) -> list[ReplyT]:
        """Everything a stream that ends by itself has to say."""
        with translated():
            return await method(request, timeout=self.timeout)

    async def stream(
        self, method: UnaryStreamMethod[RequestT, ReplyT], request: RequestT
    ) -> AsyncGenerator[ReplyT, None]:
        """A stream that goes on; only its opening has a deadline, which the caller sets."""
        with translated():
            async with method.open() as stream:
                await stream.send_message(request, end=True)
                async for reply in stream:
                    yield reply

    def close(self) -> None:
        self.channel.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
