"""The state of a Proxmox cluster: hosts, storages, virtual machines, pools, users, tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lab.boot import Power
from lab.faults import Faults
from lab.pace import Pace
from lab.proxmox.access import Access, Token
from lab.proxmox.datastore import GIB, Datastore, StorageSpec, Volume, directory, thin_pool
from lab.proxmox.errors import NoConfigurationError, OperationError
from lab.proxmox.remote_file import Fetch
from lab.proxmox.tasks import Tasks
from lab.proxmox.virtual_machine import VirtualMachine

VERSION = "9.1.11"
RELEASE = "9.1"


def _default_storages() -> dict[str, StorageSpec]:
    return {"local": directory(), "local-lvm": thin_pool()}


@dataclass(frozen=True, kw_only=True)
class HostSpec:
    storages: Mapping[str, StorageSpec] = field(default_factory=_default_storages)
    bridges: Sequence[str] = ("vmbr0",)
    cores: int = 32
    memory: int = 256 * GIB


class Host:
    def __init__(self, name: str, spec: HostSpec, datastores: Mapping[str, Datastore]) -> None:
        self.name = name
        self.spec = spec
        self.datastores = datastores

    def datastore(self, name: str) -> Datastore:
        if name not in self.datastores:
            raise OperationError(f"storage '{name}' does not exist")
        return self.datastores[name]

    def find(self, volid: str) -> tuple[Datastore, Volume]:
        """A volume that exists on this host."""
        datastore = self.datastore(volid.partition(":")[0])
        return datastore, datastore.find(volid)


@dataclass(kw_only=True)
class Pool:
    comment: str = ""
    vms: set[int] = field(default_factory=set)
    storages: set[str] = field(default_factory=set)


class Hypervisor:
    def __init__(  # noqa: PLR0917  # the seam's order is agreed on
        self,
        hosts: Mapping[str, HostSpec],
        tokens: Mapping[str, Token],
        power: Power,
        faults: Faults,
        pace: Pace,
        fetch: Fetch,
        *,
        roles: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.power = power
        self.faults = faults
        self.pace = pace
        self.fetch = fetch
        self.hosts = _hosts(hosts, faults)
        self.access = Access(tokens, roles or {}, faults)
        self.access.pools_of = self.pools_of
        self.tasks = Tasks(faults)
        self.vms: dict[int, VirtualMachine] = {}
        self.pools: dict[str, Pool] = {}

    def host(self, node: str) -> Host:
        if node not in self.hosts:
            raise OperationError(
                f"hostname lookup '{node}' failed - failed to get address info for: {node}: Name or service not known"
            )
        return self.hosts[node]

    def vm(self, node: str, vmid: int) -> VirtualMachine:
        self.host(node)
        vm = self.vms.get(vmid)
        if vm is None or vm.node != node:
            raise NoConfigurationError(node, vmid)
        return vm

    def check_unused(self, vmid: int, prefix: str = "") -> None:
        taken = self.vms.get(vmid)
        if taken:
            raise OperationError(f"{prefix}VM {vmid} already exists on node '{taken.node}'")

    def next_vmid(self) -> int:
        return next(vmid for vmid in range(100, 1_000_000_000) if vmid not in self.vms)

    def pool_of(self, vmid: int) -> str | None:
        return next((name for name, pool in self.pools.items() if vmid in pool.vms), None)

    def pools_of(self, path: str) -> list[str]:
        _, _, rest = path.partition("/vms/")
        _, _, storage = path.partition("/storage/")
        return [
            name
            for name, pool in self.pools.items()
            if (rest.isdigit() and int(rest) in pool.vms) or storage in pool.storages
        ]

    def forget(self, vm: VirtualMachine) -> None:
        """Take a destroyed machine out of everything that named it."""
        self.vms.pop(vm.vmid, None)
        for pool in self.pools.values():
            pool.vms.discard(vm.vmid)
        self.access.entries = [entry for entry in self.access.entries if entry.path != f"/vms/{vm.vmid}"]

    async def close(self) -> None:
        await self.tasks.close()


def _hosts(specs: Mapping[str, HostSpec], faults: Faults) -> dict[str, Host]:
    shared: dict[str, Datastore] = {}
    hosts = {}
    for name, spec in specs.items():
        stores = {store: Datastore(name, store, kind, faults) for store, kind in spec.storages.items()}
        for store, kind in spec.storages.items():
            if kind.shared:
                stores[store] = shared.setdefault(store, stores[store])
        hosts[name] = Host(name, spec, stores)
    return hosts
