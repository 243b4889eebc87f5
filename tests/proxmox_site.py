"""A live emulated Proxmox site for tests: served over TLS in a thread, judged by the published schema."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from proxmoxer import ProxmoxAPI

from lab.authority import Authority
from lab.boot import Boot
from lab.faults import Faults
from lab.pace import Pace
from lab.proxmox import Grant, HostSpec, Hypervisor, RemoteFile, Token, application, server
from lab.request_log import RequestLog
from tests.proxmox_oracle import Judge

FACTORY = "https://factory.example/image/abc/v1.13.9"
IMAGE = f"{FACTORY}/nocloud-amd64.qcow2"
IMAGE_SIZE = 400 << 20
FILE = "local:import/talos.qcow2"
SECRET = "11111111-2222-3333-4444-555555555555"
ADMIN = "admin@pve!lab"

VM: dict[str, Any] = {
    "vmid": 100,
    "name": "node-1",
    "memory": 4096,
    "balloon": 0,
    "cores": 2,
    "sockets": 1,
    "cpu": "cputype=x86-64-v2-AES",
    "acpi": 1,
    "agent": "enabled=1,fstrim_cloned_disks=0,type=virtio",
    "boot": "order=scsi0",
    "onboot": 1,
    "ostype": "l26",
    "scsihw": "virtio-scsi-single",
    "tags": "worker;b;a",
    "template": 0,
    "net0": "model=virtio,bridge=vmbr0,firewall=0,macaddr=BC:24:11:00:00:01,tag=11",
    "scsi0": f"file=local-lvm:0,import-from={FILE},size=21474836480,aio=io_uring,backup=1,iothread=1,discard=on",
    "ide2": "file=local-lvm:cloudinit,",
    "ipconfig0": "gw=10.0.0.1,ip=10.0.0.11/24",
}


class FakePower:
    """Remembers what was switched on; its machines answer the agent when told to."""

    def __init__(self) -> None:
        self.on: dict[int, Boot] = {}
        self.events: list[str] = []
        self.agents: dict[int, list[str]] = {}

    async def power_on(self, boot: Boot) -> None:
        self.on[boot.vmid] = boot
        self.events.append(f"on {boot.vmid}")

    async def power_off(self, vmid: int, *, graceful: bool) -> None:
        self.on.pop(vmid, None)
        self.events.append(f"{'shutdown' if graceful else 'off'} {vmid}")

    def addresses(self, vmid: int) -> list[str]:
        return self.agents.get(vmid, [])

    async def erase(self, vmid: int) -> None:
        self.events.append(f"erase {vmid}")


async def fetch(url: str) -> RemoteFile:
    if not url.startswith(FACTORY):
        raise LookupError(url)
    return RemoteFile(url=url, size=IMAGE_SIZE, mimetype="application/octet-stream")


class Site:
    def __init__(self, directory: Path, tokens: Mapping[str, Token], roles: Mapping[str, Sequence[str]]) -> None:
        self.power = FakePower()
        self.faults = Faults()
        self.authority = Authority(directory / "authority")
        self.log = RequestLog(directory / "requests.jsonl")
        hosts = {"atlas": HostSpec(), "boreas": HostSpec()}
        self.hypervisor = Hypervisor(hosts, tokens, self.power, self.faults, Pace(), fetch, roles=roles)
        self.judge = Judge(application(self.hypervisor, self.log))
        self.server = server(self.judge, "127.0.0.1", 0, self.authority.issue(["127.0.0.1"]))
        self._clients: dict[tuple[str, str], ProxmoxAPI] = {}
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        async def serve() -> None:
            await self.server.serve()
            await self.hypervisor.close()

        asyncio.run(serve())

    def start(self) -> None:
        self._thread.start()
        until(lambda: self.server.started)

    def stop(self) -> None:
        self.server.should_exit = self.server.force_exit = True
        self._thread.join(10)

    @property
    def port(self) -> int:
        port: int = self.server.servers[0].sockets[0].getsockname()[1]
        return port

    def client(self, identity: str = ADMIN, secret: str = SECRET) -> ProxmoxAPI:
        """One connection per token, however often it is asked for."""
        if (identity, secret) not in self._clients:
            self._clients[identity, secret] = self._connect(identity, secret)
        return self._clients[identity, secret]

    def _connect(self, identity: str, secret: str) -> ProxmoxAPI:
        user, _, name = identity.partition("!")
        return ProxmoxAPI(
            "127.0.0.1",
            port=self.port,
            user=user,
            token_name=name,
            token_value=secret,
            verify_ssl=str(self.authority.certificate),
        )

    def finish(self, upid: str, client: ProxmoxAPI | None = None) -> str:
        """Wait for a task; its exit status."""
        task = (client or self.client()).nodes(upid.split(":")[1]).tasks(upid).status
        until(lambda: task.get()["status"] == "stopped")
        exit_status: str = task.get()["exitstatus"]
        return exit_status

    def download(self, node: str = "atlas", url: str = IMAGE, filename: str = "talos.qcow2") -> str:
        target = self.client().nodes(node).storage("local")("download-url")
        return self.finish(target.post(url=url, filename=filename, content="import"))

    def create(self, node: str = "atlas", **changes: Any) -> str:
        options = {key: value for key, value in {**VM, **changes}.items() if value is not None}
        return self.finish(self.client().nodes(node).qemu.post(**options))

    def vm(self, vmid: int = 100, node: str = "atlas", client: ProxmoxAPI | None = None) -> Any:
        return (client or self.client()).nodes(node).qemu(vmid)


def until(condition: Any) -> None:
    """Bounded, so that a test fails instead of hanging."""
    for _ in range(1000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("did not come true")


@contextmanager
def site(
    directory: Path,
    tokens: Mapping[str, Token] | None = None,
    roles: Mapping[str, Sequence[str]] | None = None,
) -> Iterator[Site]:
    """Whatever happens in it must please the published schema."""
    everything = {ADMIN: Token(secret=SECRET, grants=[Grant(path="/", role="Administrator")]), **(tokens or {})}
    running = Site(directory, everything, roles or {})
    running.start()
    try:
        yield running
    finally:
        running.stop()
    assert running.judge.faults == []
