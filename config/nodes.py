"""One machine."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from .values import Address, Integer, Mac, Section, Word

LABEL_KEY = r"^([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$"
LABEL_VALUE = r"^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$"
TAINT = r"^([A-Za-z0-9._-]*:)?(NoSchedule|PreferNoSchedule|NoExecute)$"

LabelKey = Annotated[str, Field(pattern=LABEL_KEY)]
LabelValue = Annotated[str, Field(pattern=LABEL_VALUE)]


class DataDisk(Section):
    size: Annotated[Integer, Field(ge=1)]
    """GiB."""
    storage: Word | None = None
    """Proxmox storage; the cluster's `proxmox.storage.disks` unless said otherwise."""


class Node(Section):
    role: Literal["controlplane", "worker"]
    host: Word
    address: Address
    vmid: Annotated[Integer, Field(ge=100, le=999_999_999)]
    mac: Mac
    cores: Annotated[Integer, Field(ge=1, le=512)]
    memory: Annotated[Integer, Field(ge=1024)]
    """MiB."""
    disk: Annotated[Integer, Field(ge=10)]
    """System disk, GiB."""
    disks: list[DataDisk] = Field(default_factory=list)
    """Further disks, told apart by size."""
    labels: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    taints: dict[LabelKey, Annotated[str, Field(pattern=TAINT)]] = Field(default_factory=dict)
    """Key to `value:Effect`, or the effect alone."""
