"""The plain inputs of the probes, as types; an unknown or missing key is a programming error and raises."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal, TypeVar

from pydantic import ConfigDict, TypeAdapter
from pydantic.dataclasses import dataclass

# hide_input: a validation error must never print the credentials it was looking at.
STRICT = ConfigDict(extra="forbid", hide_input_in_errors=True)

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, config=STRICT)
class NodeRef:
    """A machine, by every name it has."""

    name: str
    address: str
    vmid: int
    host: str
    role: Literal["controlplane", "worker"]

    def __str__(self) -> str:
        return f"{self.name} ({self.address}, VM {self.vmid} on {self.host})"


@dataclass(frozen=True, kw_only=True, config=STRICT)
class TalosCredentials:
    """Base64 of PEM, as Talos's own client configuration carries them."""

    ca: str = field(repr=False)
    certificate: str = field(repr=False)
    key: str = field(repr=False)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ObjectRef:
    namespace: str
    name: str


def parse(kind: type[T], target: Mapping[str, Any]) -> T:
    return TypeAdapter(kind).validate_python(dict(target))
