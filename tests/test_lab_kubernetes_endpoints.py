"""Listeners open and close with what stands behind them, and with faults."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from lab.faults import Fault, Faults
from lab.kubernetes.endpoints import EndpointPorts, Endpoints, is_loopback
from lab.kubernetes.machine import Machine
from lab.kubernetes.process import free_port
from lab.kubernetes.reach import answers, api_address
from lab.pace import Pace
from tests.lab_kubernetes import machine_config, node


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(await reader.read(100))
    await writer.drain()
    writer.close()


async def _named(address: str) -> None:
    del address


@pytest.fixture
async def endpoints() -> AsyncIterator[Endpoints]:
    server = await asyncio.start_server(_echo, "127.0.0.1", 0)
    made = Endpoints(EndpointPorts(api=free_port(), kubeprism=free_port()), Faults(), Pace())
    made.members["cp-1"] = "127.0.0.11"
    made.serve(server.sockets[0].getsockname()[1], _named)
    await made.reconcile()
    yield made
    await made.close()
    server.close()


async def says(host: str, port: int) -> bytes:
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(b"hello")
    writer.write_eof()
    answer = await reader.read()
    writer.close()
    return answer


async def test_a_member_answers_and_so_does_kubeprism(endpoints: Endpoints) -> None:
    assert await says("127.0.0.11", endpoints.ports.api) == b"hello"
    assert await says("127.0.0.1", endpoints.ports.kubeprism) == b"hello"


async def test_nothing_answers_before_there_is_an_api_server() -> None:
    made = Endpoints(EndpointPorts(api=free_port(), kubeprism=free_port()), Faults(), Pace())
    made.members["cp-1"] = "127.0.0.11"
    await made.reconcile()
    with pytest.raises(ConnectionRefusedError):
        await says("127.0.0.11", made.ports.api)


async def test_the_last_member_takes_vip_and_kubeprism_with_it(endpoints: Endpoints) -> None:
    endpoints.vip = "127.0.0.10"
    await endpoints.reconcile()
    assert await says("127.0.0.10", endpoints.ports.api) == b"hello"
    del endpoints.members["cp-1"]
    await endpoints.reconcile()
    for host, port in (("127.0.0.10", endpoints.ports.api), ("127.0.0.1", endpoints.ports.kubeprism)):
        with pytest.raises(ConnectionRefusedError):
            await says(host, port)


async def test_the_vip_follows_a_living_holder() -> None:
    faults = Faults()
    made = Endpoints(EndpointPorts(), faults, Pace())
    made.members |= {"cp-1": "10.0.0.11", "cp-2": "10.0.0.12"}
    made.vip = "10.0.0.10"
    faults.add(Fault(name="api-one-control-plane-only", node="cp-2"))
    assert made._wanted() == [("10.0.0.12", 6443), ("10.0.0.10", 6443), ("127.0.0.1", 7445)]
    faults.add(Fault(name="vip-dead"))
    assert ("10.0.0.10", 6443) not in made._wanted()


async def test_the_vip_comes_later_than_its_holder() -> None:
    made = Endpoints(EndpointPorts(), Faults(), Pace(1.0))
    made.members["cp-1"] = "10.0.0.11"
    made.vip = "10.0.0.10"
    assert ("10.0.0.10", 6443) not in made._wanted()


async def test_loopback_is_each_nodes_own(endpoints: Endpoints) -> None:
    control_plane = Machine(node(address="127.0.0.11"))
    worker = Machine(node("w-1", "127.0.0.21", "worker"))
    for machine in (control_plane, worker):
        assert await answers(("localhost", 7445), machine, endpoints, proxied=False)
    assert await answers(("127.0.0.1", endpoints.ports.api), control_plane, endpoints, proxied=False)
    assert not await answers(("127.0.0.1", endpoints.ports.api), worker, endpoints, proxied=False)


async def test_kubeprism_must_be_switched_on(endpoints: Endpoints) -> None:
    config = machine_config("worker")
    config["machine"]["features"] = {"kubePrism": {"enabled": False}}
    assert not await answers(
        ("localhost", 7445), Machine(node("w-1", "x", "worker", config=config)), endpoints, proxied=False
    )


async def test_the_services_address_answers_only_once_something_routes_it(endpoints: Endpoints) -> None:
    machine = Machine(node())
    assert await answers(None, machine, endpoints, proxied=True)
    assert not await answers(None, machine, endpoints, proxied=False)
    machine.agent = True
    assert await answers(None, machine, endpoints, proxied=False)


async def test_any_other_address_is_tried(endpoints: Endpoints) -> None:
    machine = Machine(node("w-1", "127.0.0.21", "worker"))
    endpoints.members["cp-2"] = "127.0.0.12"
    await endpoints.reconcile()
    assert is_loopback("127.0.0.12")
    assert api_address({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}) == ("10.0.0.1", 443)
    assert api_address({}) is None
    assert not await answers(("no-such-host.invalid", endpoints.ports.api), machine, endpoints, proxied=False)
