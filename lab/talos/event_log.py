"""What `talosctl events` shows: the last things that happened on a machine."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncIterator

from google.protobuf.any_pb2 import Any
from google.protobuf.message import Message

from lab.talos.service import Service
from talos_api import machine_pb2

HISTORY = 256


class EventLog:
    def __init__(self) -> None:
        self._events: deque[machine_pb2.Event] = deque(maxlen=HISTORY)
        self._numbers = itertools.count(1)
        self._watchers: list[asyncio.Queue[machine_pb2.Event]] = []

    def publish(self, payload: Message, actor: str = "") -> None:
        data = Any(type_url=f"talos/runtime/{payload.DESCRIPTOR.full_name}", value=payload.SerializeToString())
        event = machine_pb2.Event(data=data, id=f"{next(self._numbers):020d}", actor_id=actor)
        self._events.append(event)
        for queue in self._watchers:
            queue.put_nowait(event)

    def service(self, service: Service) -> None:
        info = service.info()
        action = machine_pb2.ServiceStateEvent.Action.Value(service.state.value.upper())
        self.publish(
            machine_pb2.ServiceStateEvent(service=service.id, action=action, message=service.last, health=info.health)
        )

    def sequence(self, name: str, actor: str) -> None:
        action = machine_pb2.SequenceEvent.Action.START
        self.publish(machine_pb2.SequenceEvent(sequence=name, action=action), actor)

    async def follow(self, request: machine_pb2.EventsRequest) -> AsyncIterator[machine_pb2.Event]:
        """Some of the past if it was asked for, then whatever happens."""
        queue: asyncio.Queue[machine_pb2.Event] = asyncio.Queue()
        self._watchers.append(queue)
        try:
            for event in self._past(request):
                yield event
            while True:
                event = await queue.get()
                if request.with_actor_id in ("", event.actor_id):
                    yield event
        finally:
            self._watchers.remove(queue)

    def _past(self, request: machine_pb2.EventsRequest) -> list[machine_pb2.Event]:
        past = [event for event in self._events if request.with_actor_id in ("", event.actor_id)]
        if request.tail_id:
            return [event for event in past if event.id > request.tail_id]
        if request.tail_events < 0:
            return past
        return past[-request.tail_events :] if request.tail_events else []
