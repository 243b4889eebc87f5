"""Who may read a volume, or give it to a machine."""

from __future__ import annotations

from lab.proxmox.call import Call
from lab.proxmox.datastore import Datastore, Volume


def check_readable(call: Call, datastore: Datastore, volume: Volume, vmid: int | None = None) -> None:
    """Raises unless the caller may; a machine may always have what is its own."""
    path = f"/storage/{datastore.name}"
    if call.allows(path, "Datastore.Allocate") or (volume.vmid is not None and volume.vmid == vmid):
        return
    if volume.content == "images":
        call.check(path, "Datastore.Audit")
        call.check(f"/vms/{volume.vmid}", "VM.Config.Disk")
        return
    call.access.check_any(call.subject, path, "Datastore.AllocateSpace", "Datastore.Audit")
