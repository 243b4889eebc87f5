"""Whether a machine or an image whose creation was cut short is there, as Proxmox tells it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from operations.pending import Action, Finding
from operations.stack import StackError

LOOKS = 600
"""Seconds that Proxmox may be at work before the operator is asked to come back later."""
QUIET = 5
"""Looks in a row without a task, after which nobody is at work on it any more."""
OURS = "groundwork"

Say = Callable[[str], None]


class Api(Protocol):
    async def get(self, path: str, /, **query: str) -> Any: ...


@dataclass(frozen=True, kw_only=True)
class Hypervisor:
    api: Api
    say: Say
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def machine(self, inputs: Mapping[str, Any]) -> Finding:
        host, vmid = str(inputs["nodeName"]), int(inputs["vmId"])
        where = f"VM {vmid} on {host}"

        async def running() -> dict[str, Any] | None:
            found = await self._machine(host, vmid)
            return found if found and found["status"] == "running" else None

        # The plugin outlives the engine and goes on: a machine that is being made may yet become whole.
        if await self._when_quiet(host, str(vmid), str(inputs["name"]), running):
            found = await self._machine(host, vmid)
            _check_ours(found or {}, str(inputs["name"]), where)
            return Finding(action=Action.ADOPT, observed=f"{where} runs", identity=str(vmid))
        found = await self._machine(host, vmid)
        if found is None:
            return Finding(action=Action.AGAIN, observed=f"there is no {where}")
        _check_ours(found, str(inputs["name"]), where)
        return Finding(action=Action.ANEW, observed=f"{where} never started", identity=str(vmid))

    async def image(self, inputs: Mapping[str, Any]) -> Finding:
        host, storage, file = (str(inputs[key]) for key in ("nodeName", "datastoreId", "fileName"))
        volume = f"{storage}:{inputs['contentType']}/{file}"

        async def there() -> Any:
            listed = await self.api.get(f"/nodes/{host}/storage/{storage}/content", content=str(inputs["contentType"]))
            return next((each for each in listed if each["volid"] == volume), None)

        if await self._when_quiet(host, file, file, there):
            return Finding(action=Action.ADOPT, observed=f"{volume} is on {host}", identity=volume)
        return Finding(action=Action.AGAIN, observed=f"{volume} is not on {host}")

    async def _machine(self, host: str, vmid: int) -> dict[str, Any] | None:
        listed: list[dict[str, Any]] = await self.api.get(f"/nodes/{host}/qemu")
        return next((each for each in listed if int(each["vmid"]) == vmid), None)

    async def _when_quiet(
        self, host: str, subject: str, name: str, done: Callable[[], Awaitable[Any]]
    ) -> dict[str, Any] | None:
        """What `done` finds, or None once no task has worked on the subject for a while."""
        quiet, told = 0, False
        for _ in range(LOOKS):
            found: dict[str, Any] | None = await done()
            tasks = await self.api.get(f"/nodes/{host}/tasks", source="active")
            busy = [task["type"] for task in tasks if str(task.get("id")) == subject and not task.get("endtime")]
            quiet = 0 if busy else quiet + 1
            if found and not busy:
                return found
            if quiet >= QUIET:
                return None
            if busy and not told:
                self.say(f"{name}: Proxmox is still at work on it ({busy[0]}); waiting")
                told = True
            await self.pause(1.0)
        raise StackError(f"{name}: Proxmox is still at work on it after {LOOKS} s; run this again later")


def _check_ours(found: Mapping[str, Any], name: str, where: str) -> None:
    """Never take, and never remove, somebody else's machine."""
    tags = str(found.get("tags", "")).replace(",", ";").split(";")
    if found.get("name") != name or OURS not in tags:
        raise StackError(
            f"{where} is called {found.get('name')} and is not tagged {OURS}: it is not the {name} of this stack.\n"
            f"Give {name} another vmid, or remove that machine, then run this again."
        )
