"""Where the API server can be reached: one listener per living control plane, one for the VIP, one for KubePrism."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from ipaddress import ip_address

from lab.faults import Faults
from lab.kubernetes.forwarder import Forwarder
from lab.kubernetes.tasks import Tasks
from lab.pace import Pace

API_PORT = 6443
KUBEPRISM_PORT = 7445
FLAP_SECONDS = 3.0
RECONCILE_SECONDS = 0.2


@dataclass(frozen=True, kw_only=True)
class EndpointPorts:
    """What the listeners listen on; other than Talos's own numbers only in tests."""

    api: int = API_PORT
    kubeprism: int = KUBEPRISM_PORT


class Endpoints:
    """Listeners follow what should answer right now, members and faults considered, within a fraction of a second."""

    def __init__(self, ports: EndpointPorts, faults: Faults, pace: Pace) -> None:
        self.ports = ports
        self.members: dict[str, str] = {}
        """Address by name of every control plane whose etcd has joined and that runs."""
        self.vip: str | None = None
        self._vip_since: float | None = None
        self._faults = faults
        self._pace = pace
        self._target: int | None = None
        self._named: Callable[[str], Awaitable[None]] | None = None
        self._forwarders: dict[tuple[str, int], Forwarder] = {}
        self._tasks = Tasks()

    def serve(self, target: int, named: Callable[[str], Awaitable[None]]) -> None:
        """The API server is ready on that port; `named` returns once its certificate names an address."""
        self._target = target
        self._named = named
        self._tasks.start(self._keep_up())

    def answers(self, host: str, port: int) -> bool:
        """Whether one of these listeners is open there."""
        forwarder = self._forwarders.get((host, port))
        return forwarder is not None and forwarder.open

    def answering(self) -> bool:
        """Whether any control plane is."""
        return any(self.answers(address, self.ports.api) for address in self.members.values())

    async def close(self) -> None:
        await self._tasks.close()
        for forwarder in self._forwarders.values():
            await forwarder.stop()

    async def _keep_up(self) -> None:
        while True:
            await self.reconcile()
            await asyncio.sleep(RECONCILE_SECONDS)

    async def reconcile(self) -> None:
        wanted = self._wanted()
        for place in wanted:
            await self._open(place)
        for place, forwarder in self._forwarders.items():
            if place not in wanted:
                await forwarder.stop()

    async def _open(self, place: tuple[str, int]) -> None:
        host, port = place
        if self._target is None or self._named is None:
            return
        forwarder = self._forwarders.setdefault(place, Forwarder(host, port, self._target))
        if not forwarder.open:
            await self._named(host)
            # Another cluster of the same lab may hold KubePrism's place on the shared loopback.
            with contextlib.suppress(OSError):
                await forwarder.start()

    def _wanted(self) -> list[tuple[str, int]]:
        living = [address for name, address in self.members.items() if not self._struck(name)]
        wanted = [(address, self.ports.api) for address in living]
        if self._vip_answers(living) and self.vip:
            wanted.append((self.vip, self.ports.api))
        if living:
            wanted.append(("127.0.0.1", self.ports.kubeprism))
        return wanted

    def _struck(self, name: str) -> bool:
        only = self._faults.active("api-one-control-plane-only")
        if only and name != (only.node or next(iter(self.members))):
            return True
        flapping = self._faults.active("api-server-flaps", name)
        return flapping is not None and int(time.monotonic() / FLAP_SECONDS) % 2 == 1

    def _vip_answers(self, living: list[str]) -> bool:
        """An election takes its time: the VIP comes later than its holder."""
        if not self.vip or not living or self._faults.active("vip-dead"):
            self._vip_since = None
            return False
        now = time.monotonic()
        self._vip_since = self._vip_since or now
        return now - self._vip_since >= self._pace.seconds("vip")


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
