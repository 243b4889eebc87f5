"""A machine that changes its rules keeps nobody who came under the old ones."""

from __future__ import annotations

from typing import Any

from lab.talos.listener import _Server


class Wire:
    """As much of a transport as a connection needs."""

    def __init__(self) -> None:
        self.closed = False

    def write(self, data: bytes) -> None:
        pass

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default


class NoRoutes:
    def __mapping__(self) -> dict[str, Any]:
        return {}

    def unknown(self, path: str) -> Any:
        raise AssertionError(path)


async def cut_off(*, hang_up: bool) -> bool:
    server, wire = _Server(NoRoutes()), Wire()  # type: ignore[arg-type]
    await server.start("127.0.0.1", 0)
    protocol = server._protocol_factory()
    if hang_up:
        server.hang_up()
    protocol.connection_made(wire)  # type: ignore[arg-type]
    closed = wire.closed
    if not hang_up:
        server.hang_up()
    return closed


async def test_a_connection_that_completes_after_the_change_is_cut() -> None:
    assert await cut_off(hang_up=True)


async def test_a_connection_under_the_present_rules_stays() -> None:
    assert not await cut_off(hang_up=False)
