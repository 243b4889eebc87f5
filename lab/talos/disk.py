"""What a machine keeps when its power goes, and whether it can boot from it at all."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lab.boot import Boot
from lab.talos.applied_config import AppliedConfig

PLATFORM = "nocloud"


@dataclass(kw_only=True)
class Disk:
    config: AppliedConfig | None = None
    staged: AppliedConfig | None = None
    """Becomes the config at the next boot."""
    etcd_data: bool = False

    def load(self) -> AppliedConfig | None:
        """The config to boot with."""
        if self.staged is not None:
            self.config, self.staged = self.staged, None
        return self.config

    def wipe(self) -> None:
        self.config = self.staged = None
        self.etcd_data = False


def boot_problem(boot: Boot) -> str | None:
    """Why a machine switched on like this never answers; None when nothing keeps it from it."""
    if boot.image is None:
        return "Boot failed: not a bootable disk"
    if not boot.image.whole:
        return "the boot disk was imported from a truncated image"
    if not any(PLATFORM in name.lower() for name in (boot.image.filename, boot.image.url)):
        return f"the image is not of the platform {PLATFORM}: no network configuration is read"
    if boot.address is None:
        return "there is no address in the cloud-init data and no DHCP"
    return None


def image_version(boot: Boot) -> str:
    """The Talos release in the image's address."""
    found = re.search(r"v\d+\.\d+\.\d+(?:-[\w.]+)?", boot.image.url if boot.image else "")
    return found[0] if found else "v0.0.0"
