"""The drive options: scsi0, ide2, efidisk0 and their like."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from lab.proxmox import property_string
from lab.proxmox.errors import ParameterError

_NEW_DISK = re.compile(r"^(?:(?P<storage>[^/:\s]+):)?(?P<gibibytes>\d+(?:\.\d+)?)$")
_CLOUD_INIT = re.compile(r"[:/](?:vm-\d+-)?cloudinit(?:\.(?:raw|qcow2))?$")
_KEY_NAMES = (
    "aio backup bps bps_max_length bps_rd bps_rd_max_length bps_wr bps_wr_max_length cache detect_zeroes discard"
    " efitype file format import-from iops iops_max iops_max_length iops_rd iops_rd_max iops_rd_max_length iops_wr"
    " iops_wr_max iops_wr_max_length iothread mbps mbps_max mbps_rd mbps_rd_max mbps_wr mbps_wr_max media model"
    " ms-cert pre-enrolled-keys product queues replicate rerror ro scsiblock secs serial shared size snapshot ssd"
    " trans vendor version volume werror wwn"
)
_KEYS = frozenset(_KEY_NAMES.split())


@dataclass(frozen=True, kw_only=True)
class Drive:
    file: str
    """A volume, `none`, or what to make: `store:20`, `store:cloudinit`."""
    others: dict[str, str]

    @property
    def storage(self) -> str | None:
        store, separator, _ = self.file.partition(":")
        return store if separator else None

    @property
    def new_size(self) -> int | None:
        """Bytes of a disk to allocate; None when the drive names something that exists."""
        matched = _NEW_DISK.match(self.file)
        return int(float(matched["gibibytes"]) * (1 << 30)) if matched else None

    @property
    def new_cloud_init(self) -> bool:
        return self.file.endswith(":cloudinit")

    @property
    def cloud_init(self) -> bool:
        return bool(_CLOUD_INIT.search(self.file))

    @property
    def cdrom(self) -> bool:
        return self.others.get("media") == "cdrom"

    @property
    def empty(self) -> bool:
        return self.file in {"none", "cdrom"}

    @property
    def import_from(self) -> str | None:
        return self.others.get("import-from")

    def placed(self, volid: str, size: int | None) -> Drive:
        """The same drive on its volume: what was only there to make it is gone."""
        others = {key: value for key, value in self.others.items() if key not in {"import-from", "format", "size"}}
        return Drive(file=volid, others=others | ({"size": property_string.render_size(size)} if size else {}))

    def as_cdrom(self) -> Drive:
        return replace(self, others={**self.others, "media": "cdrom"})

    def render(self) -> str:
        return property_string.render({"file": self.file, **self.others}, "file")


def drive(option: str, text: str) -> Drive:
    values = property_string.parse(text, "file", option)
    strange = values.keys() - _KEYS
    if strange:
        message = f"invalid format - invalid key in comma-separated list property: {min(strange)}"
        raise ParameterError.named({option: message})
    file = values.pop("volume", None) or values.pop("file", None)
    if file is None:
        raise ParameterError.named({option: "invalid format - format error\nfile: property is missing"})
    return Drive(file=file, others=values)
