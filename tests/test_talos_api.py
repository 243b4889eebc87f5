"""The Talos client: TLS modes, and every way a call can fail told apart."""

from __future__ import annotations

import asyncio
import base64
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest
from google.protobuf.empty_pb2 import Empty
from grpclib.const import Status
from grpclib.exceptions import GRPCError
from grpclib.server import Server, Stream

from lab.talos import tls
from talos_api import cosi_pb2, generate, storage_pb2
from talos_api.client import TalosClient
from talos_api.cosi_grpc import StateBase
from talos_api.credentials import Credentials
from talos_api.errors import Reason, TalosError
from talos_api.resources import MACHINE_STATUS, ChangeType
from talos_api.storage_grpc import StorageServiceBase
from tests.talos_pki import TestAuthority

ADDRESS = "127.0.0.1"


class Storage(StorageServiceBase):
    failure: GRPCError | None = None

    async def Disks(self, stream: Stream[Empty, storage_pb2.DisksResponse]) -> None:  # noqa: N802
        await stream.recv_message()
        if self.failure:
            raise self.failure
        disk = storage_pb2.Disk(device_name="/dev/sda", size=10)
        await stream.send_message(storage_pb2.DisksResponse(messages=[storage_pb2.Disks(disks=[disk])]))


class State(StateBase):
    async def Get(self, stream: Stream[cosi_pb2.GetRequest, cosi_pb2.GetResponse]) -> None:  # noqa: N802
        request = await stream.recv_message()
        assert request is not None
        spec = cosi_pb2.Spec(yaml_spec="stage: running\nstatus:\n    ready: true\n")
        metadata = cosi_pb2.Metadata(namespace=request.namespace, type=request.type, id=request.id, version="7")
        resource = cosi_pb2.Resource(metadata=metadata, spec=spec)
        await stream.send_message(cosi_pb2.GetResponse(resource=resource))

    async def List(self, stream: Stream[cosi_pb2.ListRequest, cosi_pb2.ListResponse]) -> None:  # noqa: N802
        await asyncio.Event().wait()

    async def Watch(self, stream: Stream[cosi_pb2.WatchRequest, cosi_pb2.WatchResponse]) -> None:  # noqa: N802
        await stream.recv_message()
        await stream.send_message(cosi_pb2.WatchResponse())
        event = cosi_pb2.Event(event_type=cosi_pb2.EventType.BOOTSTRAPPED)
        await stream.send_message(cosi_pb2.WatchResponse(event=[event]))
        await asyncio.Event().wait()


def server_context(authority: TestAuthority, client_ca: str | None) -> ssl.SSLContext:
    identity = authority.server(ADDRESS)
    return tls.server_context(identity.certificate, identity.key, client_ca)


@asynccontextmanager
async def serving(context: ssl.SSLContext, storage: Storage | None = None) -> AsyncIterator[int]:
    listener = socket.create_server((ADDRESS, 0))
    server = Server([storage or Storage(), State()])
    await server.start(sock=listener, ssl=context)
    try:
        yield listener.getsockname()[1]
    finally:
        server.close()
        await server.wait_closed()


async def failure_of(port: int, credentials: Credentials | None) -> TalosError:
    async with TalosClient(ADDRESS, credentials, port=port) as client:
        with pytest.raises(TalosError) as caught:
            await client.disks()
    return caught.value


async def test_maintenance_mode_needs_no_certificate_and_verifies_none() -> None:
    async with serving(server_context(TestAuthority(), None)) as port, TalosClient(ADDRESS, port=port) as client:
        assert [disk.device_name for disk in await client.disks()] == ["/dev/sda"]


async def test_credentials_open_a_configured_machine() -> None:
    authority = TestAuthority()
    context = server_context(authority, authority.certificate)
    async with serving(context) as port, TalosClient(ADDRESS, authority.credentials(), port=port) as client:
        assert len(await client.disks()) == 1
        resource = await client.get(MACHINE_STATUS, "machine")
    assert (resource.kind, resource.version, resource.spec["status"]) == (MACHINE_STATUS, "7", {"ready": True})


async def test_missing_certificate_is_refused() -> None:
    authority = TestAuthority()
    async with serving(server_context(authority, authority.certificate)) as port:
        error = await failure_of(port, None)
    assert error.reason is Reason.REFUSED
    assert "certificate required" in error.message.lower().replace("_", " ")


async def test_certificate_of_another_cluster_is_refused() -> None:
    authority, other = TestAuthority(), TestAuthority()
    theirs = other.credentials()
    mixed = Credentials(ca=authority.certificate, certificate=theirs.certificate, key=theirs.key)
    async with serving(server_context(authority, authority.certificate)) as port:
        assert (await failure_of(port, mixed)).reason is Reason.REFUSED


async def test_machine_of_another_cluster_is_untrusted() -> None:
    authority, other = TestAuthority(), TestAuthority("other")
    async with serving(server_context(authority, authority.certificate)) as port:
        assert (await failure_of(port, other.credentials())).reason is Reason.UNTRUSTED


async def test_closed_port_is_unreachable() -> None:
    with socket.create_server((ADDRESS, 0)) as listener:
        port = listener.getsockname()[1]
    assert (await failure_of(port, None)).reason is Reason.UNREACHABLE


async def test_status_of_the_machine_is_kept() -> None:
    storage = Storage()
    storage.failure = GRPCError(Status.FAILED_PRECONDITION, "time is not in sync yet")
    async with serving(server_context(TestAuthority(), None), storage) as port:
        error = await failure_of(port, None)
    assert (error.reason, error.status) == (Reason.STATUS, Status.FAILED_PRECONDITION)
    assert error.message == "time is not in sync yet"


async def test_silence_ends_in_a_timeout() -> None:
    async with (
        serving(server_context(TestAuthority(), None)) as port,
        TalosClient(ADDRESS, port=port, timeout=0.1) as client,
    ):
        with pytest.raises(TalosError) as caught:
            await client.list(MACHINE_STATUS)
    assert caught.value.reason is Reason.TIMEOUT


async def test_silent_port_ends_in_a_timeout() -> None:
    with socket.create_server((ADDRESS, 0)) as listener:
        async with TalosClient(ADDRESS, port=listener.getsockname()[1], timeout=0.1) as client:
            with pytest.raises(TalosError) as caught:
                await client.disks()
    assert caught.value.reason is Reason.TIMEOUT


async def test_watch_delivers_and_can_be_left() -> None:
    async with serving(server_context(TestAuthority(), None)) as port, TalosClient(ADDRESS, port=port) as client:
        async with aclosing(client.watch(MACHINE_STATUS)) as changes:
            first = await anext(changes)
        assert first.type is ChangeType.BOOTSTRAPPED
        assert len(await client.disks()) == 1


async def test_lost_connection_is_made_again() -> None:
    context = server_context(TestAuthority(), None)
    async with serving(context) as port, TalosClient(ADDRESS, port=port) as client:
        await client.disks()
        client.channel.close()
        assert len(await client.disks()) == 1


def test_credentials_hide_their_key() -> None:
    credentials = TestAuthority().credentials()
    packed = {
        name: base64.b64encode(getattr(credentials, name).encode()).decode() for name in ("ca", "certificate", "key")
    }
    assert Credentials.from_base64(**packed) == credentials
    assert "PRIVATE KEY" not in repr(credentials)


def test_generated_code_is_current(tmp_path: Path) -> None:
    generate.generate(tmp_path)
    fresh = {file.name: file.read_text() for file in (tmp_path / "talos_api").iterdir()}
    committed = {name: (generate.PACKAGE / name).read_text() for name in fresh}
    assert fresh == committed
