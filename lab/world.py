"""Everything a lab runs inside its namespaces, in one event loop: hypervisor, machines, clusters and internet."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from pathlib import Path
from typing import Any

from lab import control, environment, premises, toolbox, web
from lab.authority import Authority
from lab.fault_catalogue import CATALOGUE
from lab.fault_plan import FaultPlan, FaultRequest
from lab.faults import Faults
from lab.internet.internet import Internet
from lab.kubernetes.cluster import Cluster
from lab.pace import Pace
from lab.proxmox import Hypervisor, RemoteFile, options
from lab.proxmox import application as proxmox_application
from lab.proxmox.virtual_machine import VirtualMachine
from lab.request_log import RequestLog
from lab.run_directory import RunDirectory
from lab.setting import INTERNET_ADDRESS, PROXMOX_ADDRESS, Setting, hosts_file
from lab.stackfile import Place
from lab.talos.machines import Machines

HTTPS = 443


class World:
    def __init__(self, run: RunDirectory) -> None:
        self.run = run
        self.setting = Setting.read(run.setting)
        self.stacks = self.setting.stack_files()
        self.requests = RequestLog(run.requests)
        self.faults = Faults()
        self.plan = FaultPlan(self.faults, CATALOGUE)
        self.pace = Pace(self.setting.pace)
        self.authority = Authority(run.authority)
        self.programs = toolbox.Toolbox(run)
        self.clusters: dict[str, Cluster] = {}
        self.credentials = environment.read_credentials(run)
        self.internet = self._internet()
        self.machines = Machines(
            self.cluster, self.check_config, run.runtime / "talos", self.faults, self.pace, self.requests
        )
        self.hypervisor = Hypervisor(
            hosts=premises.hosts(self.stacks),
            tokens=premises.tokens(self.credentials),
            power=self.machines,
            faults=self.faults,
            pace=self.pace,
            fetch=self.fetch,
            roles=premises.ROLES,
        )

    def cluster(self, identifier: str) -> Cluster:
        """The Kubernetes side of a Talos cluster, begun when its first machine asks for it."""
        if identifier not in self.clusters:
            self.clusters[identifier] = Cluster(
                directory=self.run.runtime / f"kubernetes-{len(self.clusters) + 1}",
                programs=self.programs,
                faults=self.faults,
                pace=self.pace,
                log=self.requests,
                trust=self.authority.bundle(),
            )
        return self.clusters[identifier]

    async def fetch(self, url: str) -> RemoteFile:
        """A file of the lab's internet, as the hypervisor sees it."""
        found = await self.internet.fetch(url)
        return RemoteFile(url=found.url, size=found.size, mimetype=found.mimetype)

    async def check_config(self, config: bytes) -> str | None:
        """What Talos's own validation has against a machine config."""
        checker = await asyncio.create_subprocess_exec(
            str(self.programs.path("talos-config-check")),
            stdin=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        _, complaint = await checker.communicate(config)
        return None if checker.returncode == 0 else complaint.decode().strip()

    async def live(self) -> None:
        """Until a signal ends it; whatever part fails takes the whole world down with it."""
        stopping = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stopping.set)
        for document in self.setting.faults:
            self.plan.add(FaultRequest.parse(document))
        try:
            async with asyncio.TaskGroup() as parts:
                tasks = [parts.create_task(part) for part in await self._parts()]
                await stopping.wait()
                for task in tasks:
                    task.cancel()
        finally:
            await self._close()

    async def _parts(self) -> list[Any]:
        endpoints = {file.proxmox for file in self.stacks}
        names = [place.host for place in endpoints if place.address is None]
        (self.run.etc / "hosts").write_text(hosts_file(names, self.internet.names()), encoding="utf-8")
        parts: list[Any] = [self._serve_proxmox(place) for place in endpoints]
        parts += [self._serve_internet(port) for port in sorted(self._internet_ports())]
        return [*parts, self.plan.watch(self.run.events), self._open_control()]

    async def _serve_proxmox(self, place: Place) -> None:
        issued = self.authority.issue([place.host])
        with web.listen(place.address or PROXMOX_ADDRESS, place.port) as listener:
            application = proxmox_application(self.hypervisor, self.requests)
            await web.serve(application, [listener], **options(issued))

    def _internet_ports(self) -> set[int]:
        return {HTTPS, *(Place.of(file.git_url).port for file in self.stacks)}

    async def _serve_internet(self, port: int) -> None:
        await self.internet.serve(INTERNET_ADDRESS, port)

    async def _open_control(self) -> None:
        """Last: who finds the control socket finds everything else open too."""
        await self.internet.ready.wait()
        await control.serve(control.application(self.plan, self.status), self.run)

    def status(self) -> dict[str, Any]:
        """Rows for `python -m lab status`, and what a report needs from inside."""
        return {
            "machines": [self._machine_row(vm) for vm in sorted(self.hypervisor.vms.values(), key=lambda vm: vm.vmid)],
            "clusters": [_cluster_row(identifier, cluster) for identifier, cluster in self.clusters.items()],
            "passed": self.plan.passed,
            "not_shown": [line for cluster in self.clusters.values() for line in cluster.not_shown()],
            "skews": self.internet.skews(),
        }

    def _machine_row(self, vm: VirtualMachine) -> list[str]:
        stage = self.machines.stages().get(vm.name, "off") if vm.running else "off"
        return [str(vm.vmid), vm.name, vm.node, ", ".join(self.machines.addresses(vm.vmid)), stage]

    def _internet(self) -> Internet:
        return Internet(
            cluster=self.stacks[0].cluster,
            git_root=self.run.git,
            git_token=self.credentials.git,
            state=self.run.runtime / "internet",
            modules=self.programs.module_directory,
            log=self.requests,
            authority=self.authority,
            faults=self.faults,
        )

    async def _close(self) -> None:
        await self.hypervisor.close()
        await self.machines.close()
        for cluster in self.clusters.values():
            await cluster.close()


def _cluster_row(identifier: str, cluster: Cluster) -> list[str]:
    members = ", ".join(member.hostname for member in cluster.members())
    return [identifier[:8], "ready" if cluster.ready.is_set() else "not ready", members]


async def live(run: RunDirectory) -> None:
    await World(run).live()


def main(root: Path) -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    for chatty in ("httpx", "grpclib"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    run = RunDirectory(root=root)
    asyncio.run(live(run))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
