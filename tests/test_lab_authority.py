"""The lab's certificate authority and request log."""

from __future__ import annotations

import ssl
import stat
from pathlib import Path

from lab.authority import Authority
from lab.request_log import RequestLog


def handshake(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> None:
    """A TLS handshake in memory; raises what the client would raise."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking = client.wrap_bio(to_client, to_server, server_hostname=name)
    answering = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):
        for side in (asking, answering):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue


def contexts(authority: Authority, names: list[str], trusted: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    issued = authority.issue(names)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(issued.certificate, issued.key)
    return server, ssl.create_default_context(cafile=str(trusted))


def verifies(authority: Authority, names: list[str], asked: str, trusted: Path) -> bool:
    server, client = contexts(authority, names, trusted)
    try:
        handshake(server, client, asked)
    except ssl.SSLCertVerificationError:
        return False
    return True


def test_an_issued_certificate_verifies_for_its_names_only(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    names = ["proxmox.home.arpa", "10.25.11.1"]
    assert verifies(authority, names, "proxmox.home.arpa", authority.bundle())
    assert verifies(authority, names, "10.25.11.1", authority.certificate)
    assert not verifies(authority, names, "other.home.arpa", authority.certificate)


def test_another_authority_is_not_trusted(tmp_path: Path) -> None:
    stranger = Authority(tmp_path / "stranger")
    assert not verifies(Authority(tmp_path / "own"), ["a.example"], "a.example", stranger.certificate)


def test_it_survives_a_restart_and_keeps_its_keys_private(tmp_path: Path) -> None:
    first = Authority(tmp_path).certificate.read_bytes()
    again = Authority(tmp_path)
    issued = again.issue(["a.example"])
    assert again.certificate.read_bytes() == first
    assert again.issue(["a.example"]) == issued
    for key in (issued.key, tmp_path / "ca.key"):
        assert stat.S_IMODE(key.stat().st_mode) == 0o600


def test_the_bundle_holds_the_system_roots_and_the_authority(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    bundle = authority.bundle().read_text()
    assert authority.certificate.read_text() in bundle
    assert bundle.count("BEGIN CERTIFICATE") > 50


def test_requests_are_kept_in_order_across_instances(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "requests.jsonl"
    assert RequestLog(path).entries() == []
    RequestLog(path).record("proxmox", "GET", "/version", 200)
    RequestLog(path).record("proxmox", "POST", "/pools", 403, write=True, user="a@pve")
    read, written = RequestLog(path).entries()
    assert (read["write"], written["write"], written["user"]) == (False, True, "a@pve")
