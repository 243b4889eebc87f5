"""Where the lab has other people's files from: the directories of their Go modules."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, TypeVar

Modules = Callable[[str, str], Path]
"""The directory of a module in a version; raises LookupError where it cannot be had."""

Made = TypeVar("Made")


class Workshop:
    """Makes things from module directories on first request, each once, off the event loop."""

    def __init__(self, modules: Modules) -> None:
        self._modules = modules
        self._made: dict[Hashable, asyncio.Task[Any]] = {}

    async def make(self, module: str, version: str, recipe: Callable[[Path], Made], *, key: Hashable) -> Made:
        task = self._made.get(key)
        if task is None or (task.done() and (task.cancelled() or task.exception())):
            task = asyncio.create_task(asyncio.to_thread(lambda: recipe(self._modules(module, version))))
            self._made[key] = task
        made: Made = await asyncio.shield(task)
        return made

    def finished(self) -> list[Any]:
        """What has been made so far."""
        done = (task for task in self._made.values() if task.done() and not task.cancelled())
        return [task.result() for task in done if task.exception() is None]
