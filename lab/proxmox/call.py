"""One request, authenticated and taken apart, as the handlers see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lab.proxmox.access import Access
from lab.proxmox.hypervisor import Host, Hypervisor
from lab.proxmox.property_string import boolean
from lab.proxmox.tasks import Work
from lab.proxmox.virtual_machine import VirtualMachine


@dataclass(frozen=True, kw_only=True)
class Call:
    hypervisor: Hypervisor
    subject: str
    """The full id of the token that calls."""
    params: Mapping[str, str]
    """Path, query and body together, as Proxmox sees them."""

    @property
    def access(self) -> Access:
        return self.hypervisor.access

    @property
    def node(self) -> str:
        return self.params["node"]

    @property
    def vmid(self) -> int:
        return int(self.params["vmid"])

    @property
    def host(self) -> Host:
        return self.hypervisor.host(self.node)

    @property
    def vm(self) -> VirtualMachine:
        return self.hypervisor.vm(self.node, self.vmid)

    def flag(self, name: str, *, default: bool = False) -> bool:
        return bool(boolean(self.params[name])) if name in self.params else default

    def number(self, name: str, default: int) -> int:
        return int(self.params.get(name, default))

    def check(self, path: str, *privileges: str) -> None:
        self.access.check(self.subject, path, *privileges)

    def allows(self, path: str, *privileges: str, any_of: bool = False) -> bool:
        return self.access.allows(self.subject, path, *privileges, any_of=any_of)

    async def start(self, kind: str, subject: str | int, work: Work) -> str:
        """Begin a task on the request's host; its UPID is the answer."""
        return await self.hypervisor.tasks.start(self.node, kind, str(subject), self.subject, work)
