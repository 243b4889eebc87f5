"""Storages of a host and the volumes on them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from lab.boot import Image
from lab.faults import Faults
from lab.proxmox.errors import OperationError, ParameterError

GIB = 1 << 30
LOCK_SECONDS = 10.0  # PVE::Storage waits that long for a storage's lock


@dataclass(frozen=True, kw_only=True)
class StorageSpec:
    kind: str
    content: frozenset[str]
    total: int
    path: str | None = None
    """Set on file-based storages."""
    shared: bool = False


def directory(total: int = 500 * GIB, *, images: bool = False) -> StorageSpec:
    """The storage `local` of a default installation, with the content type import allowed."""
    content = {"iso", "vztmpl", "backup", "snippets", "import"} | ({"images"} if images else set())
    return StorageSpec(kind="dir", content=frozenset(content), total=total, path="/var/lib/vz")


def thin_pool(total: int = 2000 * GIB) -> StorageSpec:
    """The storage `local-lvm` of a default installation."""
    return StorageSpec(kind="lvmthin", content=frozenset({"images", "rootdir"}), total=total)


@dataclass(kw_only=True)
class Volume:
    name: str
    """After the storage's name: import/talos.qcow2, vm-100-disk-0."""
    content: str
    format: str
    size: int
    """What the guest or the reader sees."""
    used: int
    """What it takes on the storage."""
    vmid: int | None = None
    image: Image | None = None
    """The bootable image its bytes came from."""
    created: int = field(default_factory=lambda: int(time.time()))


class Datastore:
    """One storage as one host sees it."""

    def __init__(self, node: str, name: str, spec: StorageSpec, faults: Faults) -> None:
        self.node = node
        self.name = name
        self.spec = spec
        self.volumes: dict[str, Volume] = {}
        self.lock_seconds = LOCK_SECONDS
        self._faults = faults
        self._lock = asyncio.Lock()

    @property
    def used(self) -> int:
        return self.spec.total if self._full() else sum(volume.used for volume in self.volumes.values())

    @property
    def available(self) -> int:
        return max(self.spec.total - self.used, 0)

    def _full(self) -> bool:
        return self._faults.active("storage-full", self.node) is not None

    def volid(self, volume: Volume) -> str:
        return f"{self.name}:{volume.name}"

    def find(self, volid: str) -> Volume:
        name = volid.removeprefix(f"{self.name}:")
        volume = self.volumes.get(name)
        if volume is None:
            raise OperationError(self._missing(name))
        return volume

    def _missing(self, name: str) -> str:
        if self.spec.path is None:
            return f"no such logical volume pve/{name}"
        return f"volume '{self.name}:{name}' does not exist"

    def require_content(self, content: str) -> None:
        if content not in self.spec.content:
            raise OperationError(f"storage '{self.name}' is not configured for content-type '{content}'")

    def require_images(self) -> None:
        if "images" not in self.spec.content:
            raise ParameterError(storage=f"storage '{self.name}' does not support vm images")

    @asynccontextmanager
    async def locked(self) -> AsyncIterator[None]:
        """The storage's lock; held by someone else for too long, the caller fails."""
        try:
            async with asyncio.timeout(self.lock_seconds):
                await self._faults.cleared("storage-lock-timeout", self.node)
                await self._lock.acquire()
        except TimeoutError:
            raise OperationError(
                f"can't lock file '/var/lock/pve-manager/pve-storage-{self.name}' - got timeout"
            ) from None
        try:
            yield
        finally:
            self._lock.release()

    async def add(self, volume: Volume) -> Volume:
        async with self.locked():
            self._require_space(volume.used)
            if volume.name in self.volumes:
                raise OperationError(f"disk image '{self.name}:{volume.name}' already exists")
            self.volumes[volume.name] = volume
        return volume

    async def grow(self, volume: Volume, size: int) -> None:
        async with self.locked():
            self._require_space(0)
            volume.size = size

    async def remove(self, volume: Volume) -> None:
        async with self.locked():
            self.volumes.pop(volume.name, None)

    def _require_space(self, needed: int) -> None:
        if not self._full() and needed <= self.available:
            return
        if self.spec.path is None:
            raise OperationError(
                "lvcreate error:   Cannot create new thin volume, free space in thin pool reached threshold."
            )
        raise OperationError("error during write: No space left on device")

    def next_disk_name(self, vmid: int) -> str:
        """vm-100-disk-0; on a file-based storage 100/vm-100-disk-0.raw; a template's base-100-disk-0 counts too."""
        for number in range(1000):
            names = {self.file_name(vmid, f"{kind}-{vmid}-disk-{number}") for kind in ("vm", "base")}
            if not names & self.volumes.keys():
                return self.file_name(vmid, f"vm-{vmid}-disk-{number}")
        raise OperationError(f"unable to allocate an image name for VM {vmid} in storage '{self.name}'")

    def file_name(self, vmid: int, stem: str) -> str:
        return stem if self.spec.path is None else f"{vmid}/{stem}.raw"
