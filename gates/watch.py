"""Kubernetes lists that keep themselves current through one watch each."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field

from gates.kubernetes import Kubernetes, MissingError, Object
from gates.trouble import TroubleError

RELIST = 30
"""Seconds after which a watch is begun anew from a list, so that a silent connection cannot hide the truth for long."""
FIRST_RETRY, LONGEST_RETRY = 0.2, 2.0


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A collection of objects, by the path that lists it."""

    path: str
    name: str
    """What to call it in a message."""
    optional: bool = False
    """Whether the API may not serve it at all; it then counts as empty."""
    labels: str = ""
    fields: str = ""
    metadata_only: bool = False
    """For Secrets, whose content is nobody's business."""

    @property
    def query(self) -> dict[str, str]:
        wanted = {"labelSelector": self.labels, "fieldSelector": self.fields}
        return {key: value for key, value in wanted.items() if value}


@dataclass(kw_only=True)
class Collection:
    """The objects of one kind as last seen."""

    kind: Kind
    objects: dict[tuple[str, str], Object] = field(default_factory=dict)
    version: str = ""
    """Where a watch goes on from; empty when the last list failed."""
    trouble: TroubleError | None = None

    def fill(self, answer: Object) -> None:
        self.objects = {_key(item): item for item in answer.get("items") or []}
        self.version = answer["metadata"]["resourceVersion"]
        self.trouble = None

    def fail(self, trouble: TroubleError) -> None:
        self.trouble, self.version = trouble, ""
        if isinstance(trouble, MissingError):
            self.objects = {}
            absent = MissingError(f"the API does not serve {self.kind.path}", "its definition is not registered (yet)")
            self.trouble = None if self.kind.optional else absent

    def apply(self, event: Object) -> None:
        item = event["object"]
        if event["type"] == "ERROR":
            raise TroubleError(str(item.get("message", "the watch ended")))
        self.version = item["metadata"]["resourceVersion"]
        if event["type"] == "DELETED":
            self.objects.pop(_key(item), None)
        elif event["type"] != "BOOKMARK":
            self.objects[_key(item)] = item


class Watched:
    """Several kinds of one cluster, kept current in the background."""

    def __init__(self, api: Kubernetes, kinds: Iterable[Kind]) -> None:
        self.api = api
        self.collections = {kind.name: Collection(kind=kind) for kind in kinds}
        self._changed = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def objects(self, name: str) -> list[Object]:
        return list(self.collections[name].objects.values())

    def troubles(self) -> list[TroubleError]:
        return [each.trouble for each in self.collections.values() if each.trouble]

    async def refresh(self) -> None:
        """Read every list now, whatever the watches say."""
        await asyncio.gather(*(self._list(each) for each in self.collections.values()))

    async def start(self) -> None:
        """List everything once, then follow it."""
        if not self._tasks:
            await self.refresh()
            self._tasks = [asyncio.create_task(self._follow(each)) for each in self.collections.values()]

    def settle(self) -> None:
        """Call before a look: changes after this are news."""
        self._changed.clear()

    async def changed(self) -> None:
        await self._changed.wait()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _list(self, each: Collection) -> None:
        try:
            kind = each.kind
            each.fill(await self.api.get(kind.path, metadata_only=kind.metadata_only, **kind.query))
        except TroubleError as trouble:
            each.fail(trouble)

    async def _follow(self, each: Collection) -> None:
        retry = FIRST_RETRY
        while True:
            if each.version and await self._drained(each):
                retry = FIRST_RETRY
            else:
                await asyncio.sleep(retry)
                retry = min(retry * 1.5, LONGEST_RETRY)
            await self._relist(each)

    async def _drained(self, each: Collection) -> bool:
        """Take in events until the watch ends; whether it ended as it should."""
        try:
            async with aclosing(self._events(each)) as events:
                async for event in events:
                    self._take(each, event)
        except TroubleError:
            return False
        return True

    def _events(self, each: Collection) -> AsyncGenerator[Object, None]:
        kind = each.kind
        return self.api.watch(
            kind.path, each.version, seconds=RELIST, metadata_only=kind.metadata_only, query=kind.query
        )

    def _take(self, each: Collection, event: Object) -> None:
        each.apply(event)
        if event["type"] != "BOOKMARK":
            self._changed.set()

    async def _relist(self, each: Collection) -> None:
        before = (each.objects, each.trouble and each.trouble.observed)
        await self._list(each)
        if before != (each.objects, each.trouble and each.trouble.observed):
            self._changed.set()


def _key(item: Object) -> tuple[str, str]:
    meta = item["metadata"]
    return meta.get("namespace", ""), meta["name"]
