"""Every route of the emulator, declared once."""

from __future__ import annotations

from lab.proxmox.route import Route
from lab.proxmox.routes import (
    access,
    agent,
    cluster,
    content,
    high_availability,
    nodes,
    pools,
    qemu,
    qemu_config,
    qemu_disks,
    qemu_lifecycle,
    qemu_power,
    storage,
    tasks,
    tokens,
)

_FAMILIES = (
    cluster,
    high_availability,
    nodes,
    access,
    tokens,
    pools,
    storage,
    content,
    tasks,
    qemu,
    qemu_config,
    qemu_disks,
    qemu_lifecycle,
    qemu_power,
    agent,
)

ROUTES: tuple[Route, ...] = tuple(route for family in _FAMILIES for route in family.ROUTES)
