"""The machines of a cluster over the Talos API: one connection each, asked side by side, watched for changes."""

from __future__ import annotations

import asyncio
import contextlib
import time
from abc import abstractmethod
from collections.abc import Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from gates.session import ATTEMPT, Session, pause_for, within
from gates.talos_findings import foreign, silent, unconfigured
from gates.target import NodeRef, TalosCredentials
from gates.verdict import Finding, Verdict, conclude, unique
from talos_api import connection
from talos_api.client import TalosClient
from talos_api.credentials import Credentials
from talos_api.errors import Reason, TalosError
from talos_api.resources import Kind

PORT = connection.PORT
AT_ONCE = 128
"""Machines asked side by side."""
KEEPS = 5.0
"""Seconds after which what a machine said is asked again even when nothing announced a change."""
TOLD, LINES = 5, 50
"""Machines and lines of each log in a diagnostics bundle."""
FIRST_RETRY, LONGEST_RETRY = 0.2, 2.0
MENDABLE = ("not yet valid", "mismatch", "expired")
"""What can be wrong with a certificate of the right CA."""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What one look at one machine gave."""

    node: NodeRef
    findings: tuple[Finding, ...] = ()
    fatal: bool = False
    evidence: str = ""
    facts: Any = None
    """What a probe compares between machines."""


@dataclass(kw_only=True)
class Machine:
    """One node and the connections to it."""

    node: NodeRef
    client: TalosClient
    insecure: TalosClient
    seen: Seen | None = None
    asked: float = 0.0
    dirty: bool = False
    watches: list[asyncio.Task[None]] = field(default_factory=list)


class TalosSession(Session):
    """Looks at every machine; later only at those that were not well, and at all once more before it says healthy."""

    watched: tuple[tuple[Kind, str | None], ...] = ()
    """Resources whose change is worth another look."""

    def __init__(self, nodes: Iterable[NodeRef], credentials: TalosCredentials) -> None:
        pem = Credentials.from_base64(ca=credentials.ca, certificate=credentials.certificate, key=credentials.key)
        self.machines = [
            Machine(
                node=node,
                client=TalosClient(node.address, pem, port=PORT, timeout=ATTEMPT),
                insecure=TalosClient(node.address, None, port=PORT, timeout=ATTEMPT),
            )
            for node in nodes
        ]
        self.longest_pause = pause_for(len(self.machines)) if not self.watched else 5.0
        self._news = asyncio.Event()
        self._at_once = asyncio.Semaphore(AT_ONCE)

    @abstractmethod
    async def examine(self, machine: Machine) -> Seen:
        """Look at one machine; TalosError is taken care of."""

    def together(self, seen: list[Seen]) -> list[Finding]:
        """What only shows when all machines are well and compared."""
        del seen
        return []

    async def look(self) -> Verdict:
        self._news.clear()
        asked = self._due()
        await self._ask(asked)
        if not any(machine.seen and machine.seen.findings for machine in self.machines):
            await self._ask([machine for machine in self.machines if machine not in asked])
        return self._verdict([machine.seen for machine in self.machines if machine.seen])

    async def changed(self) -> None:
        for machine in self.machines:
            if not machine.watches:
                machine.watches = [asyncio.create_task(self._follow(machine, *each)) for each in self.watched]
        await self._news.wait()

    async def evidence(self) -> dict[str, Any]:
        unwell = [machine for machine in self.machines if machine.seen and machine.seen.findings][:TOLD]
        told = await asyncio.gather(*(tail(machine.client) for machine in unwell))
        return {f"Talos on {machine.node.name}": text for machine, text in zip(unwell, told, strict=True)}

    async def close(self) -> None:
        for machine in self.machines:
            for task in machine.watches:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
            machine.client.close()
            machine.insecure.close()

    def _due(self) -> list[Machine]:
        now = time.monotonic()
        dirty = [machine for machine in self.machines if machine.dirty]
        unwell = [m for m in self.machines if m.seen is None or m.seen.findings]
        stale = [machine for machine in unwell if now - machine.asked >= KEEPS]
        return _unique([*dirty, *stale]) or unwell

    async def _ask(self, machines: list[Machine]) -> None:
        await asyncio.gather(*(self._look_at(machine) for machine in machines))

    async def _look_at(self, machine: Machine) -> None:
        async with self._at_once:
            machine.dirty = False
            try:
                machine.seen = await within(ATTEMPT, self.examine(machine))
            except TalosError as error:
                machine.seen = await untold(machine, error)
            except TimeoutError:
                machine.seen = await untold(machine, TalosError(Reason.TIMEOUT, f"no answer within {ATTEMPT:.0f} s"))
            machine.asked = time.monotonic()

    async def _follow(self, machine: Machine, kind: Kind, name: str | None) -> None:
        """Mark the machine for another look whenever the resource changes; begin anew when the connection breaks."""
        retry = FIRST_RETRY
        while True:
            with contextlib.suppress(TalosError, TimeoutError):
                async with asyncio.timeout(ATTEMPT) as opening, aclosing(machine.client.watch(kind, name)) as changes:
                    async for _ in changes:
                        opening.reschedule(None)
                        retry = FIRST_RETRY
                        machine.dirty = True
                        self._news.set()
            await asyncio.sleep(retry)
            retry = min(retry * 1.5, LONGEST_RETRY)

    def _verdict(self, seen: list[Seen]) -> Verdict:
        findings = [found for each in seen if not each.fatal for found in each.findings]
        fatal = [found for each in seen if each.fatal for found in each.findings]
        if not findings and not fatal:
            findings = self.together(seen)
        done = sum(not each.findings for each in seen)
        told = [each.evidence for each in seen]
        # Several machines may tell the same about one of them.
        return conclude(unique(findings), told, done=done, total=len(seen), fatal=unique(fatal))


async def tail(client: TalosClient) -> dict[str, Any]:
    """The last words of a machine, as far as it still speaks."""
    told: dict[str, Any] = {}
    with contextlib.suppress(TalosError):
        services = await client.services()
        told["services"] = {name: f"{each.state}, healthy: {each.health.healthy}" for name, each in services.items()}
        told["kubelet log"] = (await client.logs("kubelet", tail_lines=LINES)).splitlines()
        told["kernel log"] = (await client.dmesg()).splitlines()[-LINES:]
    return told


def _unique(machines: list[Machine]) -> list[Machine]:
    return list({machine.node.name: machine for machine in machines}.values())


async def in_maintenance(machine: Machine) -> bool:
    """Whether it answers without credentials; raises TalosError when it does not answer at all."""
    try:
        await machine.insecure.disks()
    except TalosError as error:
        if error.reason is Reason.REFUSED:
            return False
        raise
    return True


async def untold(machine: Machine, error: TalosError) -> Seen:
    """Why a machine gave no answer to our credentials."""
    node = machine.node
    if error.reason not in (Reason.UNTRUSTED, Reason.REFUSED) or any(word in error.message for word in MENDABLE):
        return Seen(node=node, findings=(silent(node, error),))
    try:
        maintenance = await within(ATTEMPT, in_maintenance(machine))
    except (TalosError, TimeoutError):
        return Seen(node=node, findings=(silent(node, error),))
    found = unconfigured(node) if maintenance else foreign(node, error)
    return Seen(node=node, findings=(found,), fatal=not maintenance)
