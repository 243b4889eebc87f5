"""Worker tasks: started by a request, running on a host, known by their UPID."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from lab.faults import Faults
from lab.proxmox.errors import ApiError, OperationError, ParameterError

SLOW_SECONDS = 10.0
SHORT_WORK = 0.05


@dataclass(kw_only=True)
class Task:
    upid: str
    node: str
    pid: int
    kind: str
    subject: str
    """What it works on: a VM id, a file name."""
    user: str
    started: int
    ended: int | None = None
    exit_status: str | None = None
    lines: list[str] = field(default_factory=list)

    @property
    def running(self) -> bool:
        return self.exit_status is None

    def print(self, line: str) -> None:
        self.lines.append(line)

    def finish(self, exit_status: str) -> None:
        self.lines.append("TASK OK" if exit_status == "OK" else f"TASK ERROR: {exit_status}")
        self.ended = int(time.time())
        self.exit_status = exit_status


Work = Callable[[Task], Awaitable[None]]


class Tasks:
    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._tasks: dict[str, Task] = {}
        self._workers: dict[str, asyncio.Task[None]] = {}
        self._pids = itertools.count(1000)

    async def start(self, node: str, kind: str, subject: str, user: str, work: Work) -> str:
        """Begin the work; its UPID comes at once, or when short work is done: clients ask again after a second only."""
        task = self._new(node, kind, subject, user)
        worker = asyncio.create_task(self._run(task, work))
        self._workers[task.upid] = worker
        worker.add_done_callback(lambda _: self._workers.pop(task.upid, None))
        await asyncio.wait([worker], timeout=SHORT_WORK)
        return task.upid

    def _new(self, node: str, kind: str, subject: str, user: str) -> Task:
        pid, started = next(self._pids), int(time.time())
        upid = f"UPID:{node}:{pid:08X}:{pid:08X}:{started:08X}:{kind}:{subject}:{user}:"
        task = Task(upid=upid, node=node, pid=pid, kind=kind, subject=subject, user=user, started=started)
        self._tasks[upid] = task
        return task

    async def _run(self, task: Task, work: Work) -> None:
        try:
            await self._dawdle(task.node)
            await work(task)
        except ApiError as error:
            task.finish(error.message)
        except asyncio.CancelledError:
            task.finish("received interrupt")
        else:
            task.finish("OK")

    async def _dawdle(self, node: str) -> None:
        """While the fault task-slow is on, every task sits there first."""
        fault = self._faults.active("task-slow", node)
        if fault is None:
            return
        try:
            seconds = float(fault.options.get("seconds", SLOW_SECONDS))
            await asyncio.wait_for(self._faults.cleared("task-slow", node), seconds)
        except TimeoutError:
            return

    def get(self, node: str, upid: str) -> Task:
        if not upid.startswith("UPID:"):
            raise ParameterError(upid=f"unable to parse worker upid '{upid}'")
        task = self._tasks.get(upid)
        if task is None or task.node != node:
            raise OperationError("no such task")
        return task

    def of(self, node: str) -> list[Task]:
        """The newest first."""
        return [task for task in reversed(self._tasks.values()) if task.node == node]

    def stop(self, upid: str) -> None:
        worker = self._workers.get(upid)
        if worker is not None:
            worker.cancel()

    async def close(self) -> None:
        """Cancel what still runs; for the end of a lab."""
        workers = list(self._workers.values())
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
