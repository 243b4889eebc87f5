"""A Talos image schematic and the id that the image factory gives it."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

Byte = Annotated[int, Field(ge=0, le=255)]


class _Part(BaseModel):
    """Field order is the order of the canonical text; unknown fields are refused, as the factory does."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, strict=True)


class _Overlay(_Part):
    image: str = ""
    name: str = ""
    options: dict[str, Any] = {}


class _Meta(_Part):
    key: Byte
    value: str


class _Extensions(_Part):
    official_extensions: list[str] = []


class _SecureBoot(_Part):
    include_well_known_certificates: bool = False


class _Customization(_Part):
    extra_kernel_args: list[str] = []
    meta: list[_Meta] = []
    system_extensions: _Extensions = _Extensions()
    secure_boot: Annotated[_SecureBoot, Field(alias="secureboot")] = _SecureBoot()


class Schematic(_Part):
    overlay: _Overlay = _Overlay()
    customization: _Customization = _Customization()

    @classmethod
    def parse(cls, text: bytes) -> Schematic:
        try:
            return cls.model_validate(yaml.safe_load(text) or {})
        except (yaml.YAMLError, ValidationError) as error:
            raise ValueError(f"invalid schematic: {error}") from error

    @property
    def extensions(self) -> list[str]:
        return self.customization.system_extensions.official_extensions

    def canonical(self) -> bytes:
        document = {"customization": {}} | self.model_dump(by_alias=True, exclude_defaults=True)
        ordered = {key: document[key] for key in ("overlay", "customization") if key in document}
        return yaml.dump(ordered, Dumper=_GoStyle, sort_keys=False, indent=4, width=2**31).encode()

    @property
    def id(self) -> str:
        return hashlib.sha256(self.canonical()).hexdigest()


class _GoStyle(yaml.SafeDumper):
    """Lists indented below their key, as the factory's YAML library writes them."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
        super().increase_indent(flow, False)
