"""The Proxmox preflight: every missing thing at once, each with the command that provides it."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from talos_api.credentials import load_identity
from tests.gates_runs import evidence, fatal, findings, observed
from tests.talos_pki import TestAuthority

TOKEN = "groundwork@pve!up=6f1c9f0e-0000-4000-8000-123456789abc"
PRIVILEGES = ["VM.Allocate", "VM.Audit"]


class FakeProxmox:
    """Answers GETs from a table of paths."""

    def __init__(self) -> None:
        self.authority = TestAuthority("pve")
        self.refusals: dict[str, tuple[int, Any]] = {}
        self.answers: dict[str, Any] = {
            "/version": {"version": "9.0.10"},
            "/access/permissions": {"/vms": dict.fromkeys(PRIVILEGES, 1)},
            "/nodes": [{"node": "atlas", "status": "online"}, {"node": "boreas", "status": "online"}],
            "/cluster/resources": [
                {"vmid": 1111, "name": "cp-1", "node": "atlas"},
                {"vmid": 9, "name": "x", "node": "y"},
            ],
        }
        for host in ("atlas", "boreas"):
            local = {"storage": "local", "content": "iso,import", "active": 1}
            self.answers[f"/nodes/{host}/storage"] = [local, {"storage": "lvm", "content": "images", "active": 1}]
            self.answers[f"/nodes/{host}/network"] = [
                {"iface": "vmbr0", "type": "bridge"},
                {"iface": "e", "type": "eth"},
            ]
            self.answers[f"/nodes/{host}/query-url-metadata"] = {"size": 1}
        self.seen: list[str] = []
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            url = urlsplit(head.split(" ")[1])
            path = url.path.removeprefix("/api2/json")
            self.seen.append(f"{head.split(' ')[0]} {path} {parse_qs(url.query)}")
            authorized = f"PVEAPIToken={TOKEN}" in head
            status, body = (200, {"data": self.answers.get(path)}) if authorized else (401, {"data": None})
            status, body = self.refusals.get(path, (status, body))
            content = (body if isinstance(body, str) else json.dumps(body)).encode()
            lines = f"HTTP/1.1 {status} Said\r\nConnection: close\r\nContent-Length: {len(content)}\r\n\r\n"
            writer.write(lines.encode() + content)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def target(self, **changed: Any) -> dict[str, Any]:
        wanted: dict[str, Any] = {
            "endpoint": f"https://127.0.0.1:{self.port}",
            "token": TOKEN,
            "insecure": False,
            "ca": self.authority.certificate,
            "hosts": ["atlas", "boreas"],
            "storages": [{"name": "local", "content": "import"}, {"name": "lvm", "content": "images"}],
            "bridges": ["vmbr0"],
            "vms": [
                {"vmid": 1111.0, "name": "cp-1", "host": "atlas"},
                {"vmid": 1112.0, "name": "cp-2", "host": "boreas"},
            ],
            "images": ["https://factory.talos.dev/versions"],
            "minimum_version": "8.4",
            "privileges": {"/vms": PRIVILEGES},
        }
        return {**wanted, **changed}


@pytest.fixture
async def proxmox() -> AsyncIterator[FakeProxmox]:
    fake = FakeProxmox()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    identity = fake.authority.server("127.0.0.1")
    load_identity(context, identity.certificate, identity.key)
    server = await asyncio.start_server(fake.serve, "127.0.0.1", 0, ssl=context)
    fake.port = server.sockets[0].getsockname()[1]
    yield fake
    server.close()
    await server.wait_closed()


async def test_everything_there_and_only_read(proxmox: FakeProxmox) -> None:
    told = await evidence("proxmox-preflight", proxmox.target())
    assert told[0].startswith("Proxmox VE 9.0.10")
    assert TOKEN.partition("=")[2] not in "".join(told)
    assert all(line.startswith("GET ") for line in proxmox.seen)


async def test_every_missing_thing_is_named_at_once(proxmox: FakeProxmox) -> None:
    proxmox.answers["/version"] = {"version": "8.3.5-1"}
    proxmox.answers["/access/permissions"] = {"/vms": {"VM.Audit": 1}}
    proxmox.answers["/cluster/resources"] = [{"vmid": 1112, "name": "mail", "node": "ceres"}]
    proxmox.answers["/nodes/atlas/storage"] = [{"storage": "local", "content": "iso", "active": 1}]
    proxmox.answers["/nodes/boreas/network"] = []
    found = await fatal("proxmox-preflight", proxmox.target())
    told = observed(found).splitlines()
    assert told == [
        "Proxmox VE 8.3.5-1, at least 8.4 is needed",
        "groundwork@pve!up lacks VM.Allocate on /vms",
        "VM id 1112 (cp-2 on boreas) is taken by mail on ceres",
        "no storage lvm on atlas",
        "storage local on atlas takes iso, not import",
        "no bridge vmbr0 on boreas; there are none",
    ]
    commands = [command for each in found for command in each.look]
    assert "pveum role add GroundworkVms --privs 'VM.Allocate'" in commands
    assert (
        "pveum acl modify /vms --users 'groundwork@pve' --tokens 'groundwork@pve!up' --roles GroundworkVms" in commands
    )
    assert "pvesm set local --content iso,import" in commands


async def test_privileges_on_the_root_have_a_role_of_their_own(proxmox: FakeProxmox) -> None:
    found = await fatal("proxmox-preflight", proxmox.target(privileges={"/": ["Sys.Audit"]}))
    assert any("pveum role add GroundworkRoot" in command for command in found[0].look)


async def test_what_may_come_back_is_waited_for(proxmox: FakeProxmox) -> None:
    proxmox.answers["/nodes"] = [{"node": "atlas", "status": "online"}, {"node": "boreas", "status": "offline"}]
    proxmox.answers["/nodes/atlas/storage"][1]["active"] = 0
    proxmox.refusals["/nodes/atlas/query-url-metadata"] = (500, {"message": "could not resolve host\n"})
    proxmox.refusals["/cluster/resources"] = (595, "no connection")
    told = observed(await findings("proxmox-preflight", proxmox.target())).splitlines()
    assert told[0] == "host boreas is offline"
    assert "/cluster/resources answered 595 Said" in told[1]
    assert told[2] == "storage lvm on atlas is not active"
    assert "atlas cannot reach https://factory.talos.dev/versions" in told[3]
    assert "could not resolve host" in told[3]


async def test_a_host_that_does_not_exist_lists_those_that_do(proxmox: FakeProxmox) -> None:
    (found,) = await fatal("proxmox-preflight", proxmox.target(hosts=["atlas", "borea"]))
    assert found.observed == "no host borea; there are atlas, boreas"


async def test_a_wrong_token_fails_at_once_and_is_not_repeated(proxmox: FakeProxmox) -> None:
    (found,) = await fatal("proxmox-preflight", proxmox.target(token="groundwork@pve!up=wrong-secret"))
    assert "401" in found.observed
    assert "wrong-secret" not in repr(found)
    assert any("pveum user token list groundwork@pve" in command for command in found.look)


async def test_a_question_the_token_may_not_ask(proxmox: FakeProxmox) -> None:
    denied = (403, {"message": "Permission check failed (/nodes/atlas, Sys.Audit|Sys.Modify)"})
    proxmox.refusals["/nodes/atlas/query-url-metadata"] = denied
    (found,) = await fatal("proxmox-preflight", proxmox.target())
    assert found.cause == "the token lacks Sys.Audit|Sys.Modify on /nodes/atlas"
    proxmox.refusals["/nodes/atlas/query-url-metadata"] = (403, {"message": "no"})
    (found,) = await fatal("proxmox-preflight", proxmox.target())
    assert found.cause == "the token lacks a privilege"


async def test_an_endpoint_that_is_down_is_waited_for(proxmox: FakeProxmox) -> None:
    found = await findings("proxmox-preflight", proxmox.target(endpoint="https://127.0.0.1:1"))
    assert "connection refused" in observed(found)


async def test_an_untrusted_certificate_says_which_key_to_set(proxmox: FakeProxmox) -> None:
    (found,) = await fatal("proxmox-preflight", proxmox.target(ca=None))
    assert "set proxmox.ca" in found.cause
    assert await evidence("proxmox-preflight", proxmox.target(ca=None, insecure=True))


async def test_the_systems_bundle_is_the_one_in_the_environment(
    proxmox: FakeProxmox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bundle = tmp_path / "bundle.pem"
    bundle.write_text(proxmox.authority.certificate)
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    assert await evidence("proxmox-preflight", proxmox.target(ca=None))
