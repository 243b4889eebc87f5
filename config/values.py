"""The scalar types of a stack file: each refuses a near miss with the spelling that would have been right."""

from __future__ import annotations

import re
import reprlib
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, WithJsonSchema
from pydantic_core import PydanticCustomError

VERSION = r"^\d+\.\d+\.\d+$"
CHART_VERSION = r"^v?\d+\.\d+\.\d+([-+][0-9A-Za-z.+-]+)?$"
LABEL_NAME = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"
VARIABLE_NAME = r"^[a-z][a-z0-9_]*$"
WORD = r"^\S+$"
MAC = r"^([0-9A-F]{2}:){5}[0-9A-F]{2}$"
RELATIVE_PATH = r"^\.?[A-Za-z0-9_-][A-Za-z0-9._-]*(/\.?[A-Za-z0-9_-][A-Za-z0-9._-]*)*$"


class Section(BaseModel):
    """A frozen part of the stack file in which unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


def shown(value: Any) -> str:
    """A value as a message may show it: on one line and not long."""
    return reprlib.repr(value)


def refuse(message: str, fix: str) -> PydanticCustomError:
    """An error that carries its own fix."""
    return PydanticCustomError("refused", "{text}", {"text": message, "fix": fix})


def _version(value: Any) -> str:
    text = str(value)
    if not re.match(VERSION, text):
        exact = text.removeprefix("v")
        fix = f"write {exact}" if re.match(VERSION, exact) else "write one exact release, such as 1.2.3"
        raise refuse(f"{shown(text)} does not name one exact release", fix)
    return text


def _chart_version(value: Any) -> str:
    text = str(value)
    if not re.match(CHART_VERSION, text):
        raise refuse(f"{shown(text)} does not name one exact release", "write the chart's full version, such as 1.2.3")
    return text


def _address(value: Any) -> IPv4Address:
    try:
        return IPv4Address(str(value))
    except ValueError:
        raise refuse(
            f"{shown(value)} is not an IPv4 address", "write four numbers without a prefix: 10.25.11.21"
        ) from None


def _network(value: Any) -> IPv4Network:
    try:
        network = IPv4Network(str(value), strict=False)
    except ValueError:
        raise refuse(f"{shown(value)} is not an IPv4 network", "write address/prefix: 10.25.11.0/24") from None
    if "/" not in str(value):
        raise refuse(f"{shown(value)} has no prefix length", f"write {value}/24 or whichever prefix is meant")
    if str(network.network_address) != str(value).split("/")[0]:
        raise refuse(f"{value} has host bits set", f"write {network}")
    return network


def _integer(value: Any) -> Any:
    if isinstance(value, bool):
        raise refuse(f"{value} is not a number", "write a number")
    return value


def _mac(value: Any) -> str:
    text = str(value).upper().replace("-", ":")
    if not re.match(MAC, text):
        raise refuse(f"{shown(value)} is not a MAC address", 'write six quoted pairs: "BC:24:11:00:00:01"')
    if int(text[:2], 16) & 1:
        raise refuse(f"{text} is a multicast address", "make the first pair even, for instance BC:24:11:…")
    return text


@dataclass(frozen=True)
class AddressRange:
    """First and last address, both included."""

    first: IPv4Address
    last: IPv4Address

    def __contains__(self, address: IPv4Address) -> bool:
        return self.first <= address <= self.last

    def __str__(self) -> str:
        return f"{self.first}-{self.last}"

    def overlaps(self, other: AddressRange) -> bool:
        return self.first <= other.last and other.first <= self.last

    def within(self, network: IPv4Network) -> bool:
        return self.first in network and self.last in network

    @classmethod
    def of(cls, network: IPv4Network) -> AddressRange:
        return cls(network.network_address, network.broadcast_address)


def _range(value: Any) -> AddressRange:
    first, dash, last = str(value).partition("-")
    if not dash:
        raise refuse(f"{shown(value)} is not a range", "write first-last: 10.25.11.120-10.25.11.129")
    result = AddressRange(_address(first.strip()), _address(last.strip()))
    if result.last < result.first:
        raise refuse(f"{result} runs backwards", f"write {result.last}-{result.first}")
    return result


def _text(pattern: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": pattern})


Version = Annotated[str, BeforeValidator(_version), _text(VERSION)]
ChartVersion = Annotated[str, BeforeValidator(_chart_version), _text(CHART_VERSION)]
VariableName = Annotated[str, Field(pattern=VARIABLE_NAME)]
Integer = Annotated[int, BeforeValidator(_integer)]
Word = Annotated[str, Field(pattern=WORD)]
Address = Annotated[IPv4Address, BeforeValidator(_address)]
Network = Annotated[IPv4Network, BeforeValidator(_network)]
Mac = Annotated[str, BeforeValidator(_mac), _text(r"^([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}$")]
Range = Annotated[AddressRange, BeforeValidator(_range), PlainSerializer(str), _text(r"^[0-9.]+ *- *[0-9.]+$")]
