"""The services of one machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lab.talos.service import Service

SYSTEM = ("machined", "containerd", "udevd", "syslogd", "auditd", "dashboard", "apid")
UNCHECKED = {"dashboard"}
FIRST_PID = 1700


class ServiceBoard:
    def __init__(self, changed: Callable[[Service], None]) -> None:
        self._services: dict[str, Service] = {}
        self._changed = changed
        self._pid = FIRST_PID

    def get(self, id: str) -> Service | None:
        return self._services.get(id)

    def add(self, id: str) -> Service:
        """Known, but not started."""
        if id not in self._services:
            self._services[id] = Service(id, lambda: self._changed(self._services[id]), checked=id not in UNCHECKED)
        return self._services[id]

    def load(self, ids: Iterable[str]) -> None:
        """Services that just run."""
        for id in ids:
            self.add(id).start(self.next_pid())

    def next_pid(self) -> int:
        self._pid += 1
        return self._pid

    @property
    def all(self) -> list[Service]:
        return sorted(self._services.values(), key=lambda service: service.id)

    @property
    def all_up(self) -> bool:
        return all(service.up for service in self._services.values())

    def clear(self) -> None:
        self._services.clear()
