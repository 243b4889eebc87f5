"""Machines on loopback with a Kubernetes that only keeps count, for tests of the Talos emulator."""

from __future__ import annotations

import asyncio
import base64
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from ipaddress import IPv4Interface
from pathlib import Path
from typing import Any, TypeVar

import yaml

from lab.boot import Boot, Image
from lab.faults import Fault, Faults
from lab.kubernetes import Node
from lab.pace import Pace
from lab.request_log import RequestLog
from lab.talos.machines import Machines
from talos_api import machine_pb2
from talos_api.client import TalosClient
from talos_api.errors import Reason, TalosError
from tests.talos_pki import TestAuthority

IMAGE = Image(url="https://factory.talos.dev/image/abc/v1.13.9/nocloud-amd64.qcow2", filename="talos.qcow2", size=1)
PATIENCE = 20.0
T = TypeVar("T")


class FakeCluster:
    """Remembers what it was told, in order."""

    def __init__(self) -> None:
        self.ready = asyncio.Event()
        self.calls: list[tuple[str, str]] = []
        self.nodes: dict[str, Node] = {}
        self.control_planes: dict[str, str] = {}
        self.ready_nodes: set[str] = set()
        self.closed = False

    async def bootstrap(self, name: str, address: str, config: Mapping[str, Any]) -> None:
        assert config["cluster"]["id"]
        self.calls.append(("bootstrap", name))

    async def join(self, name: str, address: str) -> None:
        self.calls.append(("join", name))
        self.control_planes[name] = address
        self.ready.set()

    async def leave(self, name: str) -> None:
        self.calls.append(("leave", name))
        self.control_planes.pop(name, None)

    async def claim_vip(self, address: str) -> None:
        self.calls.append(("vip", address))

    async def start_kubelet(self, node: Node) -> None:
        self.calls.append(("start_kubelet", node.name))
        self.nodes[node.name] = node

    async def stop_kubelet(self, name: str) -> None:
        self.calls.append(("stop_kubelet", name))
        self.nodes.pop(name, None)

    def node_ready(self, name: str) -> bool:
        return name in self.ready_nodes

    async def kubeconfig(self, endpoint: str) -> str:
        return f"server: {endpoint}\n"

    async def close(self) -> None:
        self.closed = True


class TalosLab:
    def __init__(self, directory: Path) -> None:
        self.authority = TestAuthority()
        self.credentials = self.authority.credentials()
        self.port = _free_port()
        self.faults = Faults()
        self.clusters: dict[str, FakeCluster] = {}
        self.problem: str | None = None
        """What the config check says."""
        self.log = RequestLog(directory / "requests.jsonl")
        self.machines = Machines(
            self._cluster, self._check, directory / "machines", self.faults, Pace(), self.log, port=self.port
        )
        self.clients: list[TalosClient] = []

    def _cluster(self, cluster_id: str) -> FakeCluster:
        return self.clusters.setdefault(cluster_id, FakeCluster())

    async def _check(self, _data: bytes) -> str | None:
        return self.problem

    @property
    def cluster(self) -> FakeCluster:
        return self._cluster("lab-cluster")

    def fault(self, name: str, node: str | None = None, **options: str) -> None:
        self.faults.add(Fault(name=name, node=node, options=options))

    async def power_on(self, number: int, name: str, **changes: Any) -> str:
        await self.machines.power_on(boot(number, name, **changes))
        return address(number)

    def client(self, number: int, *, secure: bool = True, timeout: float = 2.0) -> TalosClient:
        credentials = self.credentials if secure else None
        client = TalosClient(address(number), credentials, port=self.port, timeout=timeout)
        self.clients.append(client)
        return client

    async def maintenance(self, number: int) -> TalosClient:
        client = self.client(number, secure=False)
        await eventually(client.disks)
        return client

    async def configured(self, number: int, name: str, role: str = "controlplane", **changes: Any) -> TalosClient:
        """Switched on, configured, and answering with the cluster's credentials."""
        await self.power_on(number, name, **changes)
        await (await self.maintenance(number)).apply(self.config(number, name, role))
        client = self.client(number)
        await eventually(client.version)
        return client

    def config(self, number: int, name: str, role: str = "controlplane", **documents: Any) -> bytes:
        return machine_config(self.authority, number, name, role, **documents)

    async def cluster_of(self, planes: int, workers: int = 0) -> list[TalosClient]:
        """Bootstrapped, every control plane joined, every kubelet registered."""
        names = [(index, f"cp-{index}", "controlplane") for index in range(1, planes + 1)]
        names += [(100 + index, f"w-{index}", "worker") for index in range(1, workers + 1)]
        clients = await asyncio.gather(*(self.configured(*each) for each in names))
        await eventually(clients[0].bootstrap)
        await until(lambda: len(self.cluster.control_planes) == planes and len(self.cluster.nodes) == planes + workers)
        return clients

    async def close(self) -> None:
        for client in self.clients:
            client.close()
        await self.machines.close()


@asynccontextmanager
async def talos_lab(directory: Path, kind: type[TalosLab] = TalosLab) -> AsyncIterator[TalosLab]:
    lab = kind(directory)
    try:
        yield lab
    finally:
        await lab.close()


def address(number: int) -> str:
    return f"127.0.{20 + number // 200}.{number % 200 + 1}"


def mac(number: int) -> str:
    return f"BC:24:11:00:{number // 256:02X}:{number % 256:02X}"


def boot(number: int, name: str, **changes: Any) -> Boot:
    values: dict[str, Any] = {
        "vmid": 1000 + number,
        "name": name,
        "host": "pve",
        "mac": mac(number),
        "bridge": "vmbr0",
        "vlan": None,
        "cores": 2,
        "memory": 4096,
        "disks": {"scsi0": 40 * 1024**3},
        "image": IMAGE,
        "address": IPv4Interface(f"{address(number)}/24"),
    }
    return Boot(**{**values, **changes})


def machine_config(authority: TestAuthority, number: int, name: str, role: str, *, ip: str | None = None) -> bytes:
    plane = role == "controlplane"
    encoded = {"crt": _encode(authority.certificate), "key": _encode(authority.key) if plane else ""}
    main = {
        "version": "v1alpha1",
        "machine": {"type": role, "ca": encoded, "kubelet": {"image": "ghcr.io/siderolabs/kubelet:v1.36.4"}},
        "cluster": {
            "id": "lab-cluster",
            "clusterName": "lab",
            "controlPlane": {"endpoint": "https://10.0.0.10:6443"},
            "network": {"cni": {"name": "none"}, "podSubnets": ["10.244.0.0/16"]},
        },
    }
    documents: list[dict[str, Any]] = [
        main,
        _document("HostnameConfig", auto="off", hostname=name),
        _document("LinkAliasConfig", name="net0", selector={"match": _selector(mac(number))}),
        _document("LinkConfig", name="net0", addresses=[{"address": f"{ip or address(number)}/24"}]),
    ]
    if plane:
        documents.append(_document("Layer2VIPConfig", name="10.0.0.10", link="net0"))
    return yaml.safe_dump_all(documents).encode()


def _document(kind: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1alpha1", "kind": kind, **fields}


def _selector(hardware: str) -> str:
    return f'mac(link.permanent_addr) == "{hardware.lower()}"'


def _encode(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


async def eventually(call: Callable[[], Awaitable[T]]) -> T:
    """Its first answer that is not an error."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                return await call()
            except TalosError:
                await asyncio.sleep(0.02)


async def refusal(call: Callable[[], Awaitable[object]]) -> TalosError:
    """The error of a call that must fail."""
    try:
        await call()
    except TalosError as error:
        return error
    raise AssertionError("it was not refused")


async def until(reached: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not reached():  # noqa: ASYNC110 - what is waited for happens in the code under test
            await asyncio.sleep(0.01)


async def unreachable(client: TalosClient) -> None:
    """Wait until nothing answers any more."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await client.version()
            except TalosError as error:
                if error.reason is Reason.UNREACHABLE:
                    return
            await asyncio.sleep(0.02)


async def boot_id(client: TalosClient) -> bytes:
    request = machine_pb2.ReadRequest(path="/proc/sys/kernel/random/boot_id")
    return b"".join(data.bytes for data in await client.collect(client.machine.Read, request))


async def state_of(client: TalosClient, service: str) -> str:
    services = await client.services()
    return services[service].state if service in services else "absent"


async def up(client: TalosClient, service: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            found = (await client.services()).get(service)
            if found and found.state == "Running" and found.health.healthy:
                return
            await asyncio.sleep(0.02)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
