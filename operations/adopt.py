"""Finds out, for each kind of thing, whether its creation came to an end after the engine was gone."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from components.kubeconfig import pointed_at
from config import ClusterConfig
from gates.kubernetes import Kubernetes
from gates.proxmox import Proxmox
from gates.trouble import TroubleError
from operations.etcd import Etcd, service_state
from operations.hypervisor import Hypervisor, Say
from operations.pending import Action, Finding, Pending
from operations.releases import Releases
from operations.stack import StackError
from talos_api.credentials import Credentials

MACHINE = "proxmoxve:index/vmLegacy:VmLegacy"
IMAGE = "proxmoxve:download/file:File"
BOOTSTRAP = "talos:machine/bootstrap:Bootstrap"
RELEASE = "kubernetes:helm.sh/v3:Release"
SECRETS = "talos:machine/secrets:Secrets"
KUBECONFIG = "talos:cluster/kubeconfig:Kubeconfig"

HARMLESS = Finding(action=Action.AGAIN, observed="creating it twice does no harm")


@dataclass(frozen=True, kw_only=True)
class Witnesses:
    """Whom to ask. Each is reached only when something of its kind is pending."""

    cluster: ClusterConfig
    state: Mapping[str, Any]
    """The engine's record with its secrets in clear; never printed, never written."""
    proxmox_token: Callable[[], str]
    say: Say

    async def find(self, pending: Pending) -> Finding:
        try:
            return await self._ask(pending)
        except TroubleError as trouble:
            raise StackError(
                f"whether {pending.name} exists cannot be told: {trouble.observed}\n{trouble.cause}".rstrip()
            ) from None

    async def _ask(self, pending: Pending) -> Finding:
        if pending.type in (MACHINE, IMAGE):
            async with self._hypervisor() as hypervisor:
                ask = hypervisor.machine if pending.type == MACHINE else hypervisor.image
                return await ask(pending.inputs)
        if pending.type == RELEASE:
            async with self._releases() as releases:
                return await releases.release(pending.inputs)
        if pending.type == BOOTSTRAP:
            return await self._etcd().bootstrap()
        return HARMLESS

    @asynccontextmanager
    async def _hypervisor(self) -> AsyncIterator[Hypervisor]:
        proxmox = self.cluster.proxmox
        client = Proxmox(str(proxmox.endpoint), self.proxmox_token(), insecure=proxmox.insecure, ca=proxmox.ca)
        try:
            yield Hypervisor(api=client, say=self.say)
        finally:
            await client.close()

    @asynccontextmanager
    async def _releases(self) -> AsyncIterator[Releases]:
        address = str(self.cluster.nodes[self.cluster.talos.bootstrap_node].address)
        client = Kubernetes(pointed_at(self._output(KUBECONFIG, "kubeconfigRaw"), address))
        try:
            yield Releases(api=client)
        finally:
            await client.close()

    def _etcd(self) -> Etcd:
        issued = self._output(SECRETS, "clientConfiguration")
        credentials = Credentials.from_base64(
            ca=issued["caCertificate"], certificate=issued["clientCertificate"], key=issued["clientKey"]
        )
        addresses = {name: str(node.address) for name, node in self.cluster.control_planes.items()}
        return Etcd(control_planes=addresses, state=partial(service_state, credentials=credentials))

    def _output(self, kind: str, key: str) -> Any:
        for record in self.state["deployment"]["resources"]:
            if record["type"] == kind:
                return _clear(record["outputs"][key])
        raise StackError(f"the state holds no {kind}, although something that needs it was being created")


def _clear(value: Any) -> Any:
    """The engine wraps a secret it shows: its value is JSON beside a mark."""
    if isinstance(value, dict) and "plaintext" in value:
        return json.loads(value["plaintext"])
    return {key: _clear(inner) for key, inner in value.items()} if isinstance(value, dict) else value
