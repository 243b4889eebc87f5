"""One Kubernetes cluster of the lab: a real control plane behind emulated machines."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.faults import Faults
from lab.kubernetes.api import Api
from lab.kubernetes.applier import Applier
from lab.kubernetes.control_plane import ControlPlane, Programs
from lab.kubernetes.endpoints import EndpointPorts, Endpoints
from lab.kubernetes.kubelets import Kubelets
from lab.kubernetes.manifests import bootstrap_objects, inline_objects
from lab.kubernetes.node_object import Node
from lab.kubernetes.settings import ClusterSettings
from lab.kubernetes.surroundings import Surroundings
from lab.kubernetes.tasks import Tasks
from lab.pace import Pace
from lab.request_log import RequestLog


class AlreadyBootstrapped(Exception):  # noqa: N818 - the name the Talos emulator maps to AlreadyExists
    """etcd has data already."""


@dataclass(frozen=True, kw_only=True)
class Member:
    """An etcd member as Talos lists it."""

    id: int
    hostname: str
    peer_urls: list[str]
    client_urls: list[str]
    learner: bool = False


class Cluster:
    def __init__(
        self,
        *,
        directory: Path,
        programs: Programs,
        faults: Faults,
        pace: Pace,
        log: RequestLog,
        trust: Path | None = None,
        ports: EndpointPorts | None = None,
    ) -> None:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.directory = directory
        self.ready = asyncio.Event()
        """Set once the API server serves and Talos's own objects are being applied."""
        self._programs = programs
        self._faults = faults
        self._pace = pace
        self._log = log
        self._trust = trust
        self._endpoints = Endpoints(ports or EndpointPorts(), faults, pace)
        self._control: ControlPlane | None = None
        self._around: Surroundings | None = None
        self._api: Api | None = None
        self._kubelets: Kubelets | None = None
        self._waiting: dict[str, Node] = {}
        """Kubelets that run before there is an API server to register with."""
        self._tasks = Tasks()

    async def bootstrap(self, name: str, address: str, config: Mapping[str, Any]) -> None:
        """Start the control plane with what this machine config carries; returns when etcd is up."""
        if self._control is not None:
            raise AlreadyBootstrapped("etcd data directory is not empty")
        settings = ClusterSettings.parse(config)
        self._control = ControlPlane(
            directory=self.directory, programs=self._programs, settings=settings, name=name, address=address
        )
        self._endpoints.members[name] = address
        await self._control.start_etcd()
        self._log.record("kubernetes", "BOOTSTRAP", name, "etcd up", write=True)
        self._tasks.start(self._come_up(self._control, settings))

    async def join(self, name: str, address: str) -> None:
        """Its API server answers as soon as there is one."""
        self._endpoints.members[name] = address

    async def leave(self, name: str) -> None:
        self._endpoints.members.pop(name, None)
        if self.ready.is_set():
            await self._endpoints.reconcile()

    async def claim_vip(self, address: str) -> None:
        self._endpoints.vip = address

    async def start_kubelet(self, node: Node) -> None:
        if self._kubelets is None:
            self._waiting[node.name] = node
        else:
            await self._kubelets.add(node)

    async def stop_kubelet(self, name: str) -> None:
        self._waiting.pop(name, None)
        if self._kubelets is not None:
            await self._kubelets.remove(name)

    def members(self) -> list[Member]:
        return [_member(name, address) for name, address in self._endpoints.members.items()]

    def not_shown(self) -> list[str]:
        """What the lab took for granted instead of running it."""
        return sorted(self._around.not_shown) if self._around else []

    async def kubeconfig(self, endpoint: str) -> str:
        """The admin's, as Talos writes it."""
        if self._control is None:
            raise RuntimeError("the cluster has not been bootstrapped")
        settings = self._control.settings
        user = f"admin@{settings.name}"
        pair = settings.ca.client("admin", ["system:masters"])
        return self._control.secrets.kubeconfig(user, pair, endpoint, cluster=settings.name)

    async def close(self) -> None:
        await self._tasks.close()
        if self._kubelets is not None:
            await self._kubelets.close()
        await self._endpoints.close()
        if self._api is not None:
            await self._api.close()
        if self._control is not None:
            await self._control.stop()

    async def _come_up(self, control: ControlPlane, settings: ClusterSettings) -> None:
        self._api = api = await control.start_kubernetes()
        self._around = self._surroundings(api, control)
        self._endpoints.serve(control.ports.api, control.name)
        self._kubelets = Kubelets(self._around)
        self._kubelets.start()
        self.ready.set()
        self._log.record("kubernetes", "BOOTSTRAP", settings.name, "API server ready", write=True)
        for node in list(self._waiting.values()):
            await self._kubelets.add(node)
        self._waiting.clear()
        await Applier(api).apply_all(bootstrap_objects(settings))
        await Applier(api).apply_all(inline_objects(settings))

    def _surroundings(self, api: Api, control: ControlPlane) -> Surroundings:
        return Surroundings(
            api=api,
            url=control.url,
            settings=control.settings,
            directory=self.directory,
            programs=self._programs,
            faults=self._faults,
            pace=self._pace,
            log=self._log,
            endpoints=self._endpoints,
            trust=self._trust,
        )


def _member(name: str, address: str) -> Member:
    number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8])
    return Member(
        id=number,
        hostname=name,
        peer_urls=[f"https://{address}:2380"],
        client_urls=[f"https://{address}:2379"],
    )
