"""High availability, which nothing on this site is configured for."""

from __future__ import annotations

from typing import Any

from lab.proxmox.call import Call
from lab.proxmox.errors import OperationError
from lab.proxmox.route import Route, needs, takes


async def index(_: Call) -> list[dict[str, Any]]:
    return []


async def read(call: Call) -> dict[str, Any]:
    raise OperationError(f"no such resource '{call.params['sid']}'")


_MAY_SEE = needs("/", "Sys.Audit")

ROUTES = (
    Route(
        method="GET",
        path="/cluster/ha/resources",
        handler=index,
        permission=_MAY_SEE,
        parameters=takes("type"),
    ),
    Route(method="GET", path="/cluster/ha/resources/{sid}", handler=read, permission=_MAY_SEE),
)
