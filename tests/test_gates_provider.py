"""The dynamic provider: what the engine sees of a gate, and what an operator reads."""

from __future__ import annotations

import asyncio
import os
import pickle
import re
import signal
import ssl
import stat
import sys
import traceback
from collections.abc import Iterator, Mapping
from concurrent import futures
from functools import partial
from pathlib import Path
from typing import Any

import dill  # type: ignore[import-untyped]
import grpc  # type: ignore[import-untyped]
import pytest
from pulumi.output import UNKNOWN, Unknown
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc

from gates import diagnostics, message, registry
from gates.provider import GateError, GateProvider
from gates.redact import Redactor
from gates.registry import PROBES, Probe
from gates.session import Session
from gates.target import NodeRef, parse
from gates.trouble import explain
from gates.verdict import Failed, Finding, Healthy, Verdict, Waiting
from gates.wait import Outcome
from tests.gates_kubernetes import FakeKubernetes
from tests.gates_objects import CP, NODES, ref
from tests.gates_talos import credentials
from tests.talos_pki import TestAuthority

SECRET = "s3cr3t-token-value"


class Fixed(Session):
    def __init__(self, verdict: Verdict) -> None:
        self._verdict = verdict

    async def look(self) -> Verdict:
        return self._verdict

    async def evidence(self) -> dict[str, Any]:
        return {"pods by node": {"w-1": [f"a/b {SECRET}"]}}

    async def close(self) -> None:
        """Nothing is open."""


def fixed(verdict: Verdict, target: Mapping[str, Any]) -> Session:
    return Fixed(verdict)


STUCK = Finding(
    node=ref(), observed=f"kubelet is Failed ({SECRET})", cause="it died", look=("talosctl x",), ladder=True
)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["plugin"])
    verdicts: dict[str, Verdict] = {
        "healthy": Healthy(evidence=("fine", f"by {SECRET}")),
        "waiting": Waiting(findings=(STUCK,), done=1, total=2),
        "failed": Failed(findings=(STUCK,)),
    }
    for name, verdict in verdicts.items():
        monkeypatch.setitem(registry.PROBES, name, Probe(f"a {name} thing", partial(fixed, verdict)))
    yield
    vars(sys).pop("tracebacklimit", None)


def props(probe: str, **more: Any) -> dict[str, Any]:
    target = {"token": SECRET}
    return {"gate": "G4", "probe": probe, "target": target, "deadline": 0.5, "trigger": "d1", "urn": "urn:x", **more}


def test_the_provider_is_pickled_by_reference() -> None:
    assert len(pickle.dumps(GateProvider())) < 200
    assert len(dill.dumps(GateProvider())) < 200
    assert GateProvider.serialize_as_secret_always is False


def test_an_open_gate_says_what_it_saw_and_no_credential() -> None:
    result = GateProvider().create(props("healthy"))
    assert result.id == "G4-d1"
    assert result.outs is not None
    assert result.outs["evidence"] == ["fine", "by [hidden]"]
    assert set(result.outs) == {"gate", "probe", "trigger", "deadline", "evidence", "waited", "finished"}
    assert SECRET not in repr(result.outs)


def test_an_update_runs_the_gate_again() -> None:
    updated = GateProvider().update("G4-d1", {}, props("healthy", trigger="d2"))
    assert updated.outs is not None
    assert updated.outs["trigger"] == "d2"
    with pytest.raises(GateError):
        GateProvider().update("G4-d1", {}, props("failed"))


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        ({"trigger": "a", "deadline": 1}, {"trigger": "a", "deadline": 2, "target": {"token": "new"}}, False),
        ({"trigger": "a"}, {"trigger": "b"}, True),
        ({}, {"trigger": "a"}, True),
        ({"trigger": "a"}, {"trigger": UNKNOWN}, True),
        ({"trigger": "a"}, {"trigger": Unknown()}, True),
    ],
    ids=["credentials and deadline", "trigger", "first", "unknown text", "unknown"],
)
def test_only_the_trigger_opens_a_gate_again(old: dict[str, Any], new: dict[str, Any], changes: bool) -> None:
    assert GateProvider().diff("id", old, new).changes is changes


def test_deletion_changes_nothing() -> None:
    GateProvider().delete("id", props("failed"))


def test_check_refuses_what_cannot_be_a_gate() -> None:
    assert GateProvider().check({}, props("healthy")).failures == []
    assert GateProvider().check({}, {**props("healthy"), "probe": Unknown()}).failures == []
    failures = GateProvider().check({}, {"probe": "kublets"}).failures
    assert [each.property for each in failures] == ["gate", "target", "deadline", "trigger", "probe"]


def test_a_shut_gate_tells_node_cause_commands_ladder_and_bundle() -> None:
    with pytest.raises(GateError) as caught:
        GateProvider().create(props("waiting"))
    text = str(caught.value)
    text, _, bundle = text.partition("\n\ndiagnostics: ")
    assert text.splitlines() == [
        "G4 a waiting thing: not healthy within 0 s, 1 of 2 done",
        "",
        "w-1 (127.0.0.2, VM 1121 on boreas)",
        "  observed: kubelet is Failed ([hidden])",
        "  cause:    it died",
        "  look:     talosctl x",
        "  recover:  1. talosctl -n 127.0.0.2 -e 127.0.0.2 service kubelet restart   (give it 120 s)",
        "            2. talosctl -n 127.0.0.2 -e 127.0.0.2 reboot   (give it 300 s)",
        "            3. talosctl -n 127.0.0.2 -e 127.0.0.2 reboot --mode force   "
        "(for services stuck in a graceful stop; give it 300 s)",
        "            4. ssh root@boreas qm reset 1121   (or POST /nodes/boreas/qemu/1121/status/reset)",
        "            5. still stuck: keep the evidence "
        "(talosctl -n 127.0.0.2 -e 127.0.0.2 support; dmesg; events; get volumemountstatus)",
    ]
    assert bundle.startswith(".diagnostics/G4-")
    assert caught.value.__cause__ is None


def test_what_the_engine_prints_has_no_traceback() -> None:
    with pytest.raises(GateError) as caught:
        GateProvider().create(props("failed"))
    printed = "".join(traceback.format_exception(caught.value))
    assert "File " not in printed
    assert "waiting longer cannot help" in printed


def test_the_bundle_is_redacted_and_its_owners_only() -> None:
    with pytest.raises(GateError):
        GateProvider().create(props("failed"))
    (bundle,) = Path(".diagnostics").iterdir()
    assert stat.S_IMODE(bundle.stat().st_mode) == 0o600
    assert stat.S_IMODE(bundle.parent.stat().st_mode) == 0o700
    assert "pods by node" in bundle.read_text()
    assert SECRET not in bundle.read_text()


def test_a_directory_that_cannot_be_written_to_costs_only_the_bundle(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("file").write_text("")
    monkeypatch.setattr(diagnostics, "DIRECTORY", Path("file/below"))
    with pytest.raises(GateError) as caught:
        GateProvider().create(props("failed"))
    assert "diagnostics:" not in str(caught.value)


def test_how_long_a_finding_has_stood_is_told() -> None:
    outcome = Outcome(verdict=Waiting(findings=(STUCK,)), waited=60, deadline=60, ages={STUCK: 42.4})
    assert "(for 42 s)" in message.failure(gate="G4", title="t", outcome=outcome)


def test_many_findings_are_told_briefly_after_the_first() -> None:
    found = tuple(Finding(node=NodeRef(**{**CP, "name": f"n-{number}"}), observed="down") for number in range(20))
    outcome = Outcome(verdict=Failed(findings=found), waited=1, deadline=2)
    text = message.failure(gate="G1", title="t", outcome=outcome)
    assert "and 12 more:\n  n-8: down" in text


class Listener(engine_pb2_grpc.EngineServicer):
    def __init__(self) -> None:
        self.lines: list[Any] = []

    def Log(self, request: Any, context: Any) -> Any:  # noqa: N802
        from google.protobuf.empty_pb2 import Empty

        self.lines.append(request)
        return Empty()


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Listener, Any]]:
    listener, server = Listener(), grpc.server(futures.ThreadPoolExecutor(max_workers=1))
    engine_pb2_grpc.add_EngineServicer_to_server(listener, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    monkeypatch.setattr(sys, "argv", ["plugin", f"127.0.0.1:{port}"])
    monkeypatch.setattr("gates.wait.PROGRESS_EVERY", 0.1)
    yield listener, server
    server.stop(None).wait()


def test_progress_is_ephemeral_lines_on_the_gates_own_urn(engine: tuple[Listener, Any]) -> None:
    with pytest.raises(GateError):
        GateProvider().create(props("waiting"))
    line = engine[0].lines[0]
    assert (line.urn, line.ephemeral, line.severity) == ("urn:x", True, engine_pb2.INFO)
    assert line.message.startswith("G4 a waiting thing: waiting for w-1: kubelet is Failed ([hidden]) · 1 of 2 · ")
    assert "Ctrl-C: this gate finishes first; press again to stop now" in line.message


def test_a_gate_whose_engine_is_gone_stops_and_ends_its_process(
    engine: tuple[Listener, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    signals: list[tuple[int, int]] = []
    monkeypatch.setattr("gates.provider.os.kill", lambda pid, number: signals.append((pid, number)))
    engine[1].stop(None).wait()
    with pytest.raises(GateError, match="the Pulumi engine is gone"):
        GateProvider().create(props("waiting", deadline=600))
    assert not Path(".diagnostics").exists()
    assert signals == [(os.getpid(), signal.SIGINT)]


def test_a_gate_whose_engine_is_merely_slow_goes_on(
    engine: tuple[Listener, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gates.provider.TELL_TIMEOUT", 0.0)
    with pytest.raises(GateError, match="not healthy within"):
        GateProvider().create(props("waiting"))


def test_targets_with_unknown_keys_are_refused_without_showing_values() -> None:
    with pytest.raises(ValueError, match="unexpected") as caught:
        PROBES["nodes-ready"].open({"nodes": NODES, "kubeconfig": SECRET, "kubconfig": SECRET})
    assert SECRET not in str(caught.value)


def test_numbers_arrive_as_floats() -> None:
    assert parse(NodeRef, {**CP, "vmid": 1111.0}).vmid == 1111


def test_every_form_of_a_secret_is_hidden() -> None:
    talos, kubeconfig = credentials(TestAuthority()), FakeKubernetes().kubeconfig()
    redact = Redactor({"gates": [{"talos": talos, "kubeconfig": kubeconfig, "token": "a@pve!t=0123456789"}]})
    key = re.search("client-key-data: (.*)", kubeconfig)
    assert key is not None
    for secret in (talos["key"], key[1], "0123456789", "YUBwdmUhdD0wMTIzNDU2Nzg5"):
        assert redact(f"<{secret}>") == "<[hidden]>"
    assert redact("-----BEGIN EC PRIVATE KEY-----\nx\n-----END EC PRIVATE KEY-----") == "[hidden]"
    assert redact("https://user:pass@host/ Bearer abc.def PVEAPIToken=x!y=z") == (
        "https://[hidden]@host/ Bearer [hidden] PVEAPIToken=[hidden]"
    )
    assert Redactor({"kubeconfig": "{unclosed"})("text") == "text"


def refusal(message: str) -> ssl.SSLError:
    error = ssl.SSLError(1, message)
    error.reason = message
    return error


def unverified(code: int, reason: str) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, reason)
    error.verify_code, error.verify_message = code, reason
    return error


@pytest.mark.parametrize(
    ("error", "told", "hopeless"),
    [
        (refusal("TLSV13_ALERT_CERTIFICATE_REQUIRED"), "x: it refused our client certificate", True),
        (refusal("WRONG_VERSION_NUMBER"), "x: TLS failed (wrong version number)", False),
        (unverified(62, "Hostname mismatch"), "x: its certificate is not for this address", False),
        (unverified(9, "certificate is not yet valid"), "x: its certificate is not valid yet", False),
        (unverified(20, "unable to get local issuer certificate"), "not signed by the expected CA", True),
    ],
    ids=["refused", "no TLS", "other name", "clock", "other CA"],
)
def test_certificates_that_can_and_cannot_mend(error: ssl.SSLError, told: str, hopeless: bool) -> None:
    wrapped = RuntimeError("the transport's own words")
    wrapped.__cause__ = error
    trouble = explain(wrapped, "x")
    assert told in trouble.observed
    assert trouble.hopeless is hopeless


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(113, "No route to host"), "x: unreachable"),
        (OSError(104, "Connection reset by peer"), "x: Connection reset by peer"),
        (TimeoutError(), "x: no answer in time"),
        (ValueError("strange\nthing"), "x: strange"),
        (ValueError(), "x: ValueError"),
    ],
    ids=["no route", "reset", "timeout", "other", "wordless"],
)
def test_transport_errors_are_words_an_operator_knows(error: Exception, told: str) -> None:
    assert explain(error, "x").observed == told


async def test_a_probe_runs_without_an_engine() -> None:
    async def told(_: Any) -> None:
        raise AssertionError

    outcome = await registry.run("healthy", {}, 5, told)
    assert outcome.healthy
    await asyncio.sleep(0)
