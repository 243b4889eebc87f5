"""The one message of a request."""

from __future__ import annotations

from typing import Any, TypeVar

from google.protobuf.message import Message
from grpclib.const import Status
from grpclib.exceptions import GRPCError
from grpclib.server import Stream

RequestT = TypeVar("RequestT", bound=Message)


async def request_of(stream: Stream[RequestT, Any]) -> RequestT:
    request = await stream.recv_message()
    if request is None:
        raise GRPCError(Status.INTERNAL, "the request has no message")
    return request
