"""Whether an API server address would answer on a given node, where every machine shares one loopback."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from lab.kubernetes.endpoints import Endpoints, is_loopback
from lab.kubernetes.machine import Machine

CONNECT_SECONDS = 2.0
Address = tuple[str, int]


def api_address(environment: Mapping[str, str]) -> Address | None:
    """Where a container is told to look for the API server; None leaves it to the Service's address."""
    host = environment.get("KUBERNETES_SERVICE_HOST")
    return (host, int(environment.get("KUBERNETES_SERVICE_PORT") or 443)) if host else None


async def answers(address: Address | None, machine: Machine, endpoints: Endpoints, *, proxied: bool) -> bool:
    """`proxied`: kube-proxy routes Service addresses from the first moment on."""
    if address is None:
        return machine.agent or proxied
    host, port = address
    if is_loopback(host):
        return _answers_locally(port, machine, endpoints)
    return await _connects(host, port)


def refusal(address: Address | None, service: str) -> str:
    if address is None:
        return (
            f"unable to reach the API server at https://{service}:443: no k8sServiceHost is set, and nothing routes "
            "Service addresses before Cilium does"
        )
    return f"unable to reach the API server at https://{address[0]}:{address[1]}: connection refused on this node"


def _answers_locally(port: int, machine: Machine, endpoints: Endpoints) -> bool:
    """Its own loopback: KubePrism where the machine config has it, the API server on a control plane."""
    node = machine.node
    if port == node.kubeprism_port:
        return endpoints.answering()
    return node.is_control_plane and port == endpoints.ports.api and endpoints.answers(node.address, port)


async def _connects(host: str, port: int) -> bool:
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True
