"""One service of a machine, with the states, events and health that `talosctl service` shows."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import StrEnum

from google.protobuf.timestamp_pb2 import Timestamp

from talos_api import machine_pb2

HISTORY = 64


class State(StrEnum):
    INITIALIZED = "Initialized"
    PREPARING = "Preparing"
    WAITING = "Waiting"
    STARTING = "Starting"
    RUNNING = "Running"
    STOPPING = "Stopping"
    FINISHED = "Finished"
    FAILED = "Failed"


class Service:
    def __init__(self, id: str, changed: Callable[[], None], *, checked: bool = True) -> None:
        self.id = id
        self.state = State.INITIALIZED
        self.healthy: bool | None = None
        self._checked = checked
        """Some services have no health check; their health stays unknown."""
        self._message = ""
        self._since = _now()
        self._events: deque[machine_pb2.ServiceEvent] = deque(maxlen=HISTORY)
        self._changed = changed

    @property
    def up(self) -> bool:
        return self.state is State.RUNNING and (self.healthy is True or not self._checked)

    @property
    def log(self) -> list[str]:
        return [f"{event.state}: {event.msg}" for event in self._events]

    @property
    def last(self) -> str:
        return self._events[-1].msg if self._events else ""

    def move(self, state: State, message: str) -> None:
        """Nothing happens when it is there already, for the same reason."""
        if self._events and (self._events[-1].state, self._events[-1].msg) == (state.value, message):
            return
        if state is not State.RUNNING and self.healthy is not None:
            self._set_health(healthy=False, message="service not running")
        self.state = state
        self._record(message)

    def check(self, *, healthy: bool, message: str = "") -> None:
        if self.state is not State.RUNNING or (self.healthy, self._message) == (healthy, message):
            return
        self._set_health(healthy=healthy, message=message)
        self._record("Health check successful" if healthy else f"Health check failed: {message}")

    def start(self, pid: int) -> None:
        """From prepared to running, as the container runner reports it."""
        self.move(State.RUNNING, f"Started task {self.id} (PID {pid}) for container {self.id}")
        if self._checked:
            self.check(healthy=True)

    def info(self) -> machine_pb2.ServiceInfo:
        health = machine_pb2.ServiceHealth(
            unknown=self.healthy is None,
            healthy=self.healthy is True,
            last_message=self._message,
            last_change=self._since,
        )
        events = machine_pb2.ServiceEvents(events=self._events)
        return machine_pb2.ServiceInfo(id=self.id, state=self.state.value, events=events, health=health)

    def _set_health(self, *, healthy: bool, message: str) -> None:
        self.healthy, self._message, self._since = healthy, message, _now()

    def _record(self, message: str) -> None:
        self._events.append(machine_pb2.ServiceEvent(msg=message, state=self.state.value, ts=_now()))
        self._changed()


def _now() -> Timestamp:
    now = Timestamp()
    now.GetCurrentTime()
    return now
