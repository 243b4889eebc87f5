"""Whether etcd has been bootstrapped, as every control plane tells it; a guess could make a second one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from operations.pending import Action, Finding
from operations.stack import StackError
from talos_api.client import TalosClient
from talos_api.credentials import Credentials
from talos_api.errors import TalosError

BOOTSTRAP_ID = "machine_bootstrap"
"""The provider's id of every bootstrap."""
NOT_YET = frozenset({"", "Initialized", "Preparing", "Waiting"})
"""States of the service before it has anything to run; a missing service is the first."""
LOOKS = 12
"""Seconds after which a plugin that outlived the engine would have asked once more."""


@dataclass(frozen=True, kw_only=True)
class Etcd:
    control_planes: Mapping[str, str]
    """Address by name."""
    state: Callable[[str], Awaitable[str]]
    """The state of etcd's service on an address; raises TalosError."""
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def bootstrap(self) -> Finding:
        for _ in range(LOOKS):
            states = await self._states()
            begun = [f"{name} {state}" for name, state in states.items() if state not in NOT_YET]
            if begun:
                told = f"etcd is there already ({', '.join(begun)})"
                return Finding(action=Action.ADOPT, observed=told, identity=BOOTSTRAP_ID)
            await self.pause(1.0)
        return Finding(action=Action.AGAIN, observed="etcd waits for its bootstrap on every control plane")

    async def _states(self) -> dict[str, str]:
        try:
            told = await asyncio.gather(*(self.state(address) for address in self.control_planes.values()))
        except TalosError as error:
            raise StackError(
                f"whether etcd was bootstrapped cannot be told: {error}\n"
                "Bring every control plane back, then run this again; a second bootstrap would be a second etcd."
            ) from None
        return dict(zip(self.control_planes, told, strict=True))


async def service_state(address: str, credentials: Credentials) -> str:
    client = TalosClient(address, credentials)
    try:
        service = (await client.services()).get("etcd")
        return service.state if service else ""
    finally:
        client.close()
