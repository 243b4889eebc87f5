"""How the emulated Proxmox serves: TLS, unknown routes, its log, and its routes against the published schema."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from lab.proxmox.routes.table import ROUTES
from tests.proxmox_oracle import Judge, request_faults, response_faults, schema
from tests.proxmox_site import ADMIN, SECRET, Site, site

HEADERS = {"Authorization": f"PVEAPIToken={ADMIN}={SECRET}"}


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Site]:
    with site(tmp_path) as running:
        yield running


def get(lab: Site, path: str, method: str = "GET", **more: Any) -> httpx.Response:
    context = ssl.create_default_context(cafile=str(lab.authority.certificate))
    with httpx.Client(verify=context, headers=HEADERS, trust_env=False) as client:
        return client.request(method, f"https://127.0.0.1:{lab.port}/api2/json{path}", **more)


def handshake(lab: Site, highest: ssl.TLSVersion) -> str | None:
    context = ssl.create_default_context(cafile=str(lab.authority.certificate))
    context.maximum_version = highest
    with (
        socket.create_connection(("127.0.0.1", lab.port), 5) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as secured,
    ):
        return secured.version()


def test_tls_1_3_and_nothing_older(lab: Site) -> None:
    assert handshake(lab, ssl.TLSVersion.TLSv1_3) == "TLSv1.3"
    with pytest.raises((ssl.SSLError, ConnectionResetError)):
        handshake(lab, ssl.TLSVersion.TLSv1_2)


def test_what_is_not_emulated_is_said_and_logged(lab: Site) -> None:
    answer = get(lab, "/cluster/backup")
    assert (answer.status_code, answer.reason_phrase) == (501, "Method 'GET /cluster/backup' not implemented")
    assert get(lab, "/version", "POST").status_code == 501
    first, second = lab.log.entries()
    assert (first["status"], first["path"], first["write"]) == (501, "/cluster/backup", False)
    assert (second["method"], second["write"]) == ("POST", True)


def test_the_reason_stands_in_the_status_line_and_in_the_body(lab: Site) -> None:
    answer = get(lab, "/nodes/atlas/qemu/100/status/current")
    gone = "Configuration file 'nodes/atlas/qemu-server/100.conf' does not exist"
    assert (answer.status_code, answer.reason_phrase) == (500, gone)
    assert answer.json() == {"data": None, "message": f"{gone}\n"}
    assert "x-lab-reason" not in answer.headers


def test_without_a_token_there_is_no_answer(lab: Site) -> None:
    answer = get(lab, "/version", headers={"Authorization": ""})
    assert (answer.status_code, answer.reason_phrase, answer.content) == (401, "No ticket", b"")


def test_parameters_come_in_the_query_the_form_or_as_json(lab: Site) -> None:
    get(lab, "/pools?poolid=a", "POST")
    get(lab, "/pools", "POST", data={"poolid": "b"})
    get(lab, "/pools", "POST", content=json.dumps({"poolid": "c"}), headers={"Content-Type": "application/json"})
    assert set(lab.hypervisor.pools) == {"a", "b", "c"}


def test_a_trailing_slash_changes_nothing(lab: Site) -> None:
    assert get(lab, "/nodes/atlas/qemu/?full=1").status_code == 200


def test_the_log_names_who_and_what_but_no_secret(lab: Site) -> None:
    get(lab, "/access/users/admin@pve/token/other", "POST")
    get(lab, "/nodes")
    made, read = lab.log.entries()
    assert (made["service"], made["user"], made["write"], read["write"]) == ("proxmox", ADMIN, True, False)
    text = lab.log.path.read_text()
    assert SECRET not in text
    assert lab.hypervisor.access.users["admin@pve"].tokens["other"].secret not in text


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_every_route_is_published_by_proxmox_with_its_parameters(route: Any) -> None:
    operation = schema()[route.path][route.method.lower()]
    published = {parameter["name"]: parameter for parameter in operation.get("parameters", [])}
    for parameter in route.parameters.values():
        assert parameter.name in published
        assert parameter.required <= published[parameter.name]["required"] or parameter.name == "storage"
        kind = published[parameter.name]["schema"]["type"]
        assert parameter.kind == kind


def test_routes_are_declared_once() -> None:
    named = [(route.method, route.path) for route in ROUTES]
    assert len(named) == len(set(named))


def test_the_judge_finds_what_is_wrong() -> None:
    path = "/nodes/atlas/qemu/100/resize"
    assert list(request_faults("PUT", path, {"disk": "scsi0", "size": "1G"})) == []
    assert len(list(request_faults("PUT", path, {"disk": "floppy", "size": "1G", "colour": "red"}))) == 2
    assert len(list(request_faults("PUT", path, {}))) == 2
    assert len(list(request_faults("POST", "/nodes/a/qemu", {"vmid": "x", "net0": "virtio,colour=red"}))) == 2
    assert list(request_faults("GET", "/made/up", {})) == ["GET /made/up is not published"]
    assert list(response_faults("PUT", path, "UPID:…")) == []
    assert len(list(response_faults("PUT", path, None))) == 1
    assert len(list(response_faults("GET", "/version", {"version": 9}))) == 3
    assert len(list(response_faults("GET", "/nodes", [{"node": "a", "status": "gone"}, {"cpu": "much"}]))) == 2


def test_the_judge_sees_every_request(lab: Site) -> None:
    get(lab, "/version")
    get(lab, "/pools", "POST", data={"poolid": "a"})
    assert isinstance(lab.judge, Judge)
    assert lab.judge.judged == 2
