"""The resources of one machine, with the versions and events that COSI gives them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import yaml
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from talos_api import cosi_pb2
from talos_api.resources import Kind


@dataclass(frozen=True, kw_only=True)
class Spec:
    """The same thing twice, as Talos sends it."""

    yaml: Any
    proto: Message


class Store:
    def __init__(self) -> None:
        self._resources: dict[Kind, dict[str, cosi_pb2.Resource]] = {}
        self._contents: dict[tuple[Kind, str], Any] = {}
        """Each spec before it was encoded: comparing is much cheaper than encoding."""
        self._watchers: dict[Kind, list[asyncio.Queue[cosi_pb2.Event]]] = {}

    def get(self, kind: Kind, id: str) -> cosi_pb2.Resource | None:
        return self._resources.get(kind, {}).get(id)

    def list(self, kind: Kind) -> list[cosi_pb2.Resource]:
        return list(self._resources.get(kind, {}).values())

    def put(self, kind: Kind, id: str, spec: Spec, owner: str = "") -> None:
        """Create or update; nothing happens when it is the same already."""
        old = self.get(kind, id)
        if old is not None and self._contents[kind, id] == spec.yaml:
            return
        self._contents[kind, id] = spec.yaml
        resource = build(kind, id, encode(spec), owner, old)
        self._resources.setdefault(kind, {})[id] = resource
        event_type = cosi_pb2.EventType.CREATED if old is None else cosi_pb2.EventType.UPDATED
        self._announce(kind, cosi_pb2.Event(event_type=event_type, resource=resource, old=old))

    def remove(self, kind: Kind, id: str) -> None:
        old = self._resources.get(kind, {}).pop(id, None)
        if old is not None:
            self._announce(kind, cosi_pb2.Event(event_type=cosi_pb2.EventType.DESTROYED, resource=old))

    def replace(self, kind: Kind, specs: dict[str, Spec], owner: str = "") -> None:
        """Exactly these resources of that kind."""
        for id in list(self._resources.get(kind, {})):
            if id not in specs:
                self.remove(kind, id)
        for id, spec in specs.items():
            self.put(kind, id, spec, owner)

    def clear(self) -> None:
        """A machine that boots knows nothing."""
        self._resources.clear()

    @contextmanager
    def watching(self, kind: Kind) -> Iterator[asyncio.Queue[cosi_pb2.Event]]:
        queue: asyncio.Queue[cosi_pb2.Event] = asyncio.Queue()
        self._watchers.setdefault(kind, []).append(queue)
        try:
            yield queue
        finally:
            self._watchers[kind].remove(queue)

    def _announce(self, kind: Kind, event: cosi_pb2.Event) -> None:
        for queue in self._watchers.get(kind, []):
            queue.put_nowait(event)


def encode(spec: Spec) -> cosi_pb2.Spec:
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    # A spec that is text itself, such as a machine config, is sent as a block.
    style = "|" if isinstance(spec.yaml, str) else None
    text = yaml.dump(spec.yaml, Dumper=dumper, sort_keys=False, default_style=style)
    return cosi_pb2.Spec(yaml_spec=text, proto_spec=spec.proto.SerializeToString(deterministic=True))


def build(
    kind: Kind, id: str, spec: cosi_pb2.Spec, owner: str, old: cosi_pb2.Resource | None = None
) -> cosi_pb2.Resource:
    now = Timestamp()
    now.GetCurrentTime()
    metadata = cosi_pb2.Metadata(
        namespace=kind.namespace,
        type=kind.type,
        id=id,
        version=str(int(old.metadata.version) + 1 if old else 1),
        owner=owner,
        phase="running",
        created=old.metadata.created if old else now,
        updated=now,
    )
    return cosi_pb2.Resource(metadata=metadata, spec=spec)
