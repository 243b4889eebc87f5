"""A route as data: method, path, who may call it, what it takes, what answers."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lab.proxmox.call import Call
from lab.proxmox.errors import ParameterError, PermissionDeniedError
from lab.proxmox.property_string import boolean

Handler = Callable[[Call], Awaitable[Any]]
Permission = Callable[[Call], None]

_UNDEFINED = "property is not defined in schema and the schema does not allow additional properties"
_PATH_KINDS = {"vmid": "integer"}


@dataclass(frozen=True, kw_only=True)
class Parameter:
    name: str
    kind: str
    required: bool


def takes(words: str) -> dict[str, Parameter]:
    """`disk! size! force:boolean`: names, kinds other than string, a mark for required."""
    found = (re.fullmatch(r"([\w-]+)(?::(\w+))?(!?)", word) for word in words.split())
    return {
        match[1]: Parameter(name=match[1], kind=match[2] or "string", required=bool(match[3]))
        for match in found
        if match
    }


def anyone(_: Call) -> None:
    """Every token may; the handler shows each only what it may see."""


def needs(path: str, *privileges: str, any_of: bool = False) -> Permission:
    def check(call: Call) -> None:
        where = path.format_map(call.params)
        (call.access.check_any if any_of else call.access.check)(call.subject, where, *privileges)

    return check


def both(*permissions: Permission) -> Permission:
    def check(call: Call) -> None:
        for permission in permissions:
            permission(call)

    return check


def either(first: Permission, second: Permission) -> Permission:
    """The refusal names the second, as Proxmox does."""

    def check(call: Call) -> None:
        try:
            first(call)
        except PermissionDeniedError:
            second(call)

    return check


@dataclass(frozen=True, kw_only=True)
class Route:
    method: str
    path: str
    """As in Proxmox's published schema."""
    handler: Handler
    permission: Permission = anyone
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    also: Callable[[str], bool] | None = None
    """Further parameter names, such as a machine's options."""
    reads: bool = False
    """A POST that changes nothing."""

    @property
    def writes(self) -> bool:
        return self.method != "GET" and not self.reads

    def verify(self, given: Mapping[str, str], path_names: Mapping[str, str]) -> None:
        """Refuse what the schema does not know, misses, or types differently; everything at once."""
        errors = {name: _UNDEFINED for name in given if not self._accepts(name, path_names)}
        for parameter in self.parameters.values():
            value = given.get(parameter.name)
            fault = _fault(parameter, value)
            if fault:
                errors[parameter.name] = fault
        for name, kind in _PATH_KINDS.items():
            if kind == "integer" and not path_names.get(name, "0").isdigit():
                errors[name] = f"type check ('{kind}') failed - got '{path_names[name]}'"
        if errors:
            raise ParameterError.named(errors)

    def _accepts(self, name: str, path_names: Mapping[str, str]) -> bool:
        return name in self.parameters or name in path_names or (self.also is not None and self.also(name))


def _fault(parameter: Parameter, value: str | None) -> str | None:
    if value is None:
        return "property is missing and it is not optional" if parameter.required else None
    wrong = (parameter.kind == "integer" and not re.fullmatch(r"-?\d+", value)) or (
        parameter.kind == "boolean" and boolean(value) is None
    )
    return f"type check ('{parameter.kind}') failed - got '{value}'" if wrong else None
