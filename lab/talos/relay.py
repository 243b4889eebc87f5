"""Stand-ins for a caller's stream while its request is put to several machines."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import Message


class Collector:
    """Keeps a machine's replies."""

    def __init__(self, request: Message, stream: Any) -> None:
        self.replies: list[Message] = []
        self.metadata = stream.metadata
        self.peer = stream.peer
        self._request = request

    async def recv_message(self) -> Message:
        return self._request

    async def send_message(self, message: Message) -> None:
        self.replies.append(message)


class Tagger:
    """Passes a machine's replies on, each with the address it came from."""

    def __init__(self, stream: Any, request: Message, target: str) -> None:
        self.target = target
        self.metadata = stream.metadata
        self.peer = stream.peer
        self._stream = stream
        self._request = request

    async def recv_message(self) -> Message:
        return self._request

    async def send_message(self, message: Any) -> None:
        message.metadata.hostname = self.target
        await self._stream.send_message(message)
