"""How long things take: nothing at pace 0, what real hardware takes at pace 1."""

from __future__ import annotations

import asyncio

SECONDS = {
    "image download": 20.0,  # 400 MB from the image factory over a home line
    "boot": 25.0,  # power on to the maintenance API
    "config apply": 30.0,  # install and reboot
    "etcd": 10.0,  # a member joins and is promoted
    "vip": 5.0,  # election and gratuitous ARP
    "kubelet": 8.0,  # image pull and registration
    "image pull": 30.0,  # a Cilium agent image on a cold node
    "disk": 3.0,  # allocate and resize a volume
}


class Pace:
    def __init__(self, scale: float = 0.0) -> None:
        self.scale = scale

    def seconds(self, what: str) -> float:
        return SECONDS[what] * self.scale

    async def wait(self, what: str) -> None:
        await asyncio.sleep(self.seconds(what))
