"""The hypervisor: where the machines run and what they are made of."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from .values import LABEL_NAME, Integer, Section, Word


class Host(Section):
    zone: Annotated[str, Field(pattern=LABEL_NAME)]
    """Topology zone of the volumes on this host; the host's own name unless said otherwise."""


class ProxmoxStorage(Section):
    images: Word
    """Storage that takes the content type import, on every host."""
    disks: Word
    """Storage that takes the content type images, on every host."""


class Proxmox(Section):
    endpoint: Annotated[str, Field(pattern=r"^https://[^/\s@]+/?$")]
    """Base URL of the API, such as https://proxmox.home.arpa:8006."""
    insecure: bool = False
    """Accept any certificate. Prefer `ca`."""
    ca: str | None = None
    """PEM certificate that signed the endpoint's, when no public authority did."""
    region: Annotated[str, Field(pattern=LABEL_NAME)]
    """Topology region: the name the CSI driver knows this Proxmox cluster by."""
    hosts: Annotated[dict[str, Host], Field(min_length=1)]
    storage: ProxmoxStorage
    bridge: Word
    vlan: Annotated[Integer, Field(ge=1, le=4094)] | None = None
    mtu: Annotated[Integer, Field(ge=1280, le=9216)] = 1500
    pool: Word | None = None
    """Existing Proxmox resource pool the machines join."""
    cpu_type: Word = "x86-64-v2-AES"
    scsi_controller: Literal["virtio-scsi-single", "virtio-scsi-pci"] = "virtio-scsi-single"
    create_csi_credentials: bool = False
    """Let the program create the CSI role, user and token; needs the secret proxmoxAdminToken."""

    @model_validator(mode="before")
    @classmethod
    def _zone_is_the_host(cls, data: Any) -> Any:
        if not isinstance(data, dict) or not isinstance(data.get("hosts"), dict):
            return data
        hosts = {name: {"zone": name} if host in (None, {}) else host for name, host in data["hosts"].items()}
        return data | {"hosts": hosts}
