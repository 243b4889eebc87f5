"""One real etcd, API server, controller manager and scheduler on loopback, standing for every control plane."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

import httpx
from cryptography import x509

from lab.kubernetes import flags
from lab.kubernetes.api import Api
from lab.kubernetes.process import Process, free_port
from lab.kubernetes.secrets_directory import SecretsDirectory
from lab.kubernetes.settings import ClusterSettings
from lab.kubernetes.tasks import Tasks

POLL_SECONDS = 0.1
START_SECONDS = 120.0
RESTART_SECONDS = 1.0


class Programs(Protocol):
    """What the toolchain offers; ToolchainError, LookupError or OSError for what it does not have."""

    def path(self, name: str) -> Path: ...

    def module_directory(self, module: str, version: str) -> Path: ...


class ControlPlaneError(Exception):
    """A program of the control plane ended, or did not come up in time."""


class ControlPlane:
    def __init__(
        self, *, directory: Path, programs: Programs, settings: ClusterSettings, name: str, address: str
    ) -> None:
        self.directory = directory
        self.settings = settings
        self.ports = flags.Ports(
            etcd=free_port(), etcd_peer=free_port(), api=free_port(), manager=free_port(), scheduler=free_port()
        )
        self.secrets = SecretsDirectory(directory / "secrets", settings, self.ports.api)
        self.names = settings.alternative_names()
        self._programs = programs
        self._name = name
        self._address = address
        self._processes: dict[str, Process] = {}
        self._tasks = Tasks()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.ports.api}"

    async def start_etcd(self) -> None:
        self.secrets.write()
        await self._start("etcd", flags.etcd(self.secrets.path, self._name, self.ports))
        await self._until("etcd", self._etcd_healthy)

    async def start_kubernetes(self) -> Api:
        """Returns a client of the API server once that says it is ready."""
        secrets, settings = self.secrets.path, self.settings
        await self._start("kube-apiserver", flags.api_server(secrets, settings, self.ports, self._address))
        api = Api(self.url, ca=secrets / "ca.crt", certificate=secrets / "lab.crt", key=secrets / "lab.key")
        await self._until("kube-apiserver", api.ready)
        # Not earlier: without the roles that the API server makes at its start the manager ends at once.
        await self._start("kube-controller-manager", flags.controller_manager(secrets, settings, self.ports))
        await self._start("kube-scheduler", flags.scheduler(secrets, settings, self.ports))
        for name in self._processes:
            self._tasks.start(self._restart(name))
        return api

    async def name(self, address: str) -> None:
        """Let the serving certificate name this address, and wait until it is the one being served."""
        if address in self.names:
            return
        self.names.append(address)
        self.secrets.name_api_server(self.names)
        await self._until("kube-apiserver", lambda: self._serves(address))

    async def stop(self) -> None:
        """Clients of the API server first: they would only complain."""
        await self._tasks.close()
        for process in reversed(list(self._processes.values())):
            await process.stop()

    async def _start(self, name: str, arguments: list[str]) -> None:
        log = self.directory / f"{name}.log"
        process = Process(self._programs.path(name), arguments, log=log, directory=self.directory)
        await process.start()
        self._processes[name] = process

    async def _restart(self, name: str) -> None:
        """A static pod that ends is started again, as a kubelet would."""
        process = self._processes[name]
        while True:
            await process.wait()
            await asyncio.sleep(RESTART_SECONDS)
            await process.start()

    async def _until(self, name: str, healthy: Callable[[], Awaitable[bool]]) -> None:
        process = self._processes[name]
        try:
            async with asyncio.timeout(START_SECONDS):
                while not await _settled(healthy):
                    if process.exit_code is not None:
                        raise ControlPlaneError(f"{name} ended with {process.exit_code}: {process.tail()}")
                    await asyncio.sleep(POLL_SECONDS)
        except TimeoutError:
            raise ControlPlaneError(f"{name} is not healthy after {START_SECONDS:.0f} s: {process.tail()}") from None

    async def _etcd_healthy(self) -> bool:
        secrets = self.secrets.path
        context = ssl.create_default_context(cafile=str(secrets / "etcd-ca.crt"))
        context.load_cert_chain(secrets / "etcd-client.crt", secrets / "etcd-client.key")
        async with httpx.AsyncClient(verify=context, trust_env=False) as client:
            response = await client.get(f"https://127.0.0.1:{self.ports.etcd}/health")
        return response.is_success

    async def _serves(self, address: str) -> bool:
        context = ssl.create_default_context(cafile=str(self.secrets.path / "ca.crt"))
        _, writer = await asyncio.open_connection("127.0.0.1", self.ports.api, ssl=context)
        try:
            der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        finally:
            writer.close()
        names = x509.load_der_x509_certificate(der).extensions.get_extension_for_class(x509.SubjectAlternativeName)
        known = [*names.value.get_values_for_type(x509.DNSName)]
        known += [str(ip) for ip in names.value.get_values_for_type(x509.IPAddress)]
        return address in known


async def _settled(healthy: Callable[[], Awaitable[bool]]) -> bool:
    """Whether it is healthy; what cannot be reached yet is not."""
    try:
        return await healthy()
    except (OSError, httpx.TransportError):
        return False
