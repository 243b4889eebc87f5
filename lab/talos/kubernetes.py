"""What a Talos cluster needs of the Kubernetes that runs on it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

from lab.kubernetes import Node


class KubernetesCluster(Protocol):
    ready: asyncio.Event
    """There is an API server to register with."""

    async def bootstrap(self, name: str, address: str, config: Mapping[str, Any]) -> None:
        """Returns when etcd is up."""

    async def join(self, name: str, address: str) -> None:
        """That control plane's etcd has joined."""

    async def leave(self, name: str) -> None:
        """That control plane is gone, for now or for good."""

    async def claim_vip(self, address: str) -> None: ...

    async def start_kubelet(self, node: Node) -> None: ...

    async def stop_kubelet(self, name: str) -> None: ...

    async def kubeconfig(self, endpoint: str) -> str: ...

    async def close(self) -> None: ...
