"""Makes what only the later stages need while the first are running."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from types import TracebackType

from lab import toolbox
from lab.narrator import Narrator
from lab.run_directory import RunDirectory
from lab.stackfile import StackFile
from lab.toolchain.errors import ToolchainError
from lab.toolchain.programs import Programs


class LateSupply:
    """As a context: begins at once, brings each program into the run as it is made, and ends with the block."""

    def __init__(self, run: RunDirectory, stacks: Sequence[StackFile], narrator: Narrator) -> None:
        self._run = run
        self._stacks = stacks
        self._narrator = narrator
        self._loop = asyncio.new_event_loop()
        self._work: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._labour, name="late supply", daemon=True)

    def __enter__(self) -> None:
        self._work = self._loop.create_task(self._make())
        self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._work:
            self._loop.call_soon_threadsafe(self._work.cancel)
        self._thread.join()
        self._loop.close()

    def _labour(self) -> None:
        if self._work:
            self._loop.run_until_complete(asyncio.gather(self._work, return_exceptions=True))

    async def _make(self) -> None:
        programs = Programs()
        for name in toolbox.missing(first=False):
            try:
                await programs.resolve(name)
            except ToolchainError as error:
                self._narrator.fail(f"{name} cannot be made: {error}")
            else:
                await asyncio.to_thread(toolbox.bring_in, self._run, self._stacks)
