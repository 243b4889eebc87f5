"""Asking after worker tasks."""

from __future__ import annotations

from typing import Any

from lab.proxmox.call import Call
from lab.proxmox.errors import ParameterError
from lab.proxmox.route import Route, takes
from lab.proxmox.tasks import Task

SOURCES = {"archive": {False}, "active": {True}, "all": {False, True}}
"""Which tasks each lists: those that ended, those that run, both."""


def _task(call: Call, privilege: str) -> Task:
    """One's own tasks, or everybody's with the privilege on the host."""
    task = call.hypervisor.tasks.get(call.node, call.params["upid"])
    if task.user != call.subject:
        call.check(f"/nodes/{call.node}", privilege)
    return task


def _facts(task: Task) -> dict[str, Any]:
    return {
        "upid": task.upid,
        "node": task.node,
        "pid": task.pid,
        "pstart": task.pid,
        "starttime": task.started,
        "type": task.kind,
        "id": task.subject,
        "user": task.user,
    }


async def status(call: Call) -> dict[str, Any]:
    task = _task(call, "Sys.Audit")
    if task.running:
        return _facts(task) | {"status": "running"}
    return _facts(task) | {"status": "stopped", "exitstatus": task.exit_status}


async def log(call: Call) -> list[dict[str, Any]]:
    lines = _task(call, "Sys.Audit").lines
    start, limit = call.number("start", 0), call.number("limit", 50)
    numbered = [{"n": number, "t": line} for number, line in enumerate(lines, start=1)]
    return numbered[start : start + limit] if limit else numbered[start:]


async def stop(call: Call) -> None:
    call.hypervisor.tasks.stop(_task(call, "Sys.Modify").upid)


async def index(call: Call) -> list[dict[str, Any]]:
    everybodys = call.allows(f"/nodes/{call.node}", "Sys.Audit")
    vmid, source = call.params.get("vmid"), call.params.get("source", "archive")
    if source not in SOURCES:
        raise ParameterError(source=f"value '{source}' does not have a value in the enumeration '{', '.join(SOURCES)}'")
    shown = SOURCES[source]
    found = []
    for task in call.hypervisor.tasks.of(call.node):
        if (everybodys or task.user == call.subject) and vmid in {None, task.subject} and task.running in shown:
            ended = {"endtime": task.ended, "status": task.exit_status} if not task.running else {}
            found.append(_facts(task) | ended)
    return found[: call.number("limit", 50)]


ROUTES = (
    Route(
        method="GET",
        path="/nodes/{node}/tasks",
        handler=index,
        parameters=takes("vmid:integer limit:integer source"),
    ),
    Route(method="DELETE", path="/nodes/{node}/tasks/{upid}", handler=stop),
    Route(method="GET", path="/nodes/{node}/tasks/{upid}/status", handler=status),
    Route(
        method="GET",
        path="/nodes/{node}/tasks/{upid}/log",
        handler=log,
        parameters=takes("start:integer limit:integer download:boolean"),
    ),
)
