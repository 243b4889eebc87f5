"""The dynamic provider behind every gate; the only file here that knows Pulumi."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import grpc  # type: ignore[import-untyped]  # its stubs are not among the pinned packages
import pulumi
from pulumi.dynamic import CheckFailure, CheckResult, CreateResult, DiffResult, ResourceProvider, UpdateResult
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc

from gates import diagnostics, message
from gates.redact import Redactor
from gates.registry import PROBES, run
from gates.verdict import Healthy
from gates.wait import Outcome, Progress

REQUIRED = ("gate", "probe", "target", "deadline", "trigger")
TELL_TIMEOUT = 5.0


class GateError(Exception):
    """A gate that stays shut; its message is all the operator sees."""


class EngineGoneError(Exception):
    """Nobody is left to wait for."""


class Engine:
    """Ephemeral lines on one resource of the running update."""

    def __init__(self, address: str, urn: str) -> None:
        self._channel = grpc.insecure_channel(address)
        self._stub = engine_pb2_grpc.EngineStub(self._channel)
        self._urn = urn

    async def say(self, text: str) -> None:
        line = engine_pb2.LogRequest(severity=engine_pb2.INFO, message=text, urn=self._urn, ephemeral=True)
        try:
            await asyncio.to_thread(self._stub.Log, line, timeout=TELL_TIMEOUT)
        except grpc.RpcError as error:
            # A busy engine is late; a dead one refuses the connection.
            if error.code() is not grpc.StatusCode.DEADLINE_EXCEEDED:
                raise EngineGoneError from None

    def close(self) -> None:
        self._channel.close()


class GateProvider(ResourceProvider):
    """Waits in create and update; holds nothing, so that it is pickled by reference."""

    serialize_as_secret_always = False

    def check(self, _olds: dict[str, Any], news: dict[str, Any]) -> CheckResult:
        failures = [CheckFailure(name, f"a gate needs {name}") for name in REQUIRED if name not in news]
        probe = news.get("probe")
        if isinstance(probe, str) and probe not in PROBES:
            failures.append(CheckFailure("probe", f"no probe is called {probe}"))
        return CheckResult(news, failures)

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        """Only the trigger counts: credentials may be re-issued without opening a gate again."""
        new = _news.get("trigger")
        return DiffResult(changes=pulumi.contains_unknowns(new) or _olds.get("trigger") != new)

    def create(self, props: dict[str, Any]) -> CreateResult:
        sys.tracebacklimit = 0
        return CreateResult(f"{props['gate']}-{props['trigger']}", pass_through(props))

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> UpdateResult:
        sys.tracebacklimit = 0
        return UpdateResult(pass_through(_news))


def pass_through(props: Mapping[str, Any]) -> dict[str, Any]:
    """Wait; the outputs of an open gate, or GateError."""
    gate, probe, target = str(props["gate"]), str(props["probe"]), props["target"]
    outcome = asyncio.run(_wait(gate, probe, target, float(props["deadline"]), str(props.get("urn", ""))))
    if not isinstance(outcome.verdict, Healthy):
        raise GateError(told(gate, probe, target, outcome)) from None
    return {
        "gate": gate,
        "probe": probe,
        "trigger": props["trigger"],
        "deadline": props["deadline"],
        "evidence": [Redactor(target)(line) for line in outcome.verdict.evidence],
        "waited": math.ceil(outcome.waited * 10) / 10,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def told(gate: str, probe: str, target: Mapping[str, Any], outcome: Outcome) -> str:
    """The message, with the bundle it names already written."""
    redact, title = Redactor(target), PROBES[probe].title
    text = message.failure(gate=gate, title=title, outcome=outcome)
    bundle = diagnostics.write(gate=gate, message=text, extra=outcome.extra, redact=redact)
    return redact(message.failure(gate=gate, title=title, outcome=outcome, bundle=bundle))


def leave() -> None:
    """End this plugin process, which nobody else will: the SDK's main thread takes an interrupt as its end."""
    os.kill(os.getpid(), signal.SIGINT)


async def _wait(gate: str, probe: str, target: Mapping[str, Any], deadline: float, urn: str) -> Outcome:
    engine = Engine(sys.argv[1], urn) if len(sys.argv) > 1 and urn else None
    redact = Redactor(target)

    async def tell(progress: Progress) -> None:
        if engine:
            await engine.say(redact(message.progress(gate=gate, title=PROBES[probe].title, told=progress)))

    try:
        return await run(probe, target, deadline, tell)
    except EngineGoneError:
        leave()
        raise GateError(f"{gate}: the Pulumi engine is gone; this gate stopped and changed nothing") from None
    finally:
        if engine:
            engine.close()
