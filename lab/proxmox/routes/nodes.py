"""Hosts and their bridges."""

from __future__ import annotations

from typing import Any

from lab.proxmox.call import Call
from lab.proxmox.route import Route, takes
from lab.proxmox.summary import host_summary


async def index(call: Call) -> list[dict[str, Any]]:
    hosts = call.hypervisor.hosts.values()
    return [
        {
            **host_summary(host, audited=call.allows(f"/nodes/{host.name}", "Sys.Audit")),
            "id": f"node/{host.name}",
            "type": "node",
        }
        for host in hosts
    ]


async def network(call: Call) -> list[dict[str, Any]]:
    """Without Sys.Audit on the host only the bridges the caller may use."""
    wanted = call.params.get("type", "any")
    audited = call.allows(f"/nodes/{call.node}", "Sys.Audit")
    interfaces = [_bridge(name) for name in call.host.spec.bridges if audited or _usable(call, name)]
    if audited:
        interfaces.append({"iface": "eno1", "type": "eth", "active": 1, "exists": 1, "method": "manual", "priority": 2})
    kinds = {"any_bridge": "bridge", "any_local_bridge": "bridge"}
    return [entry for entry in interfaces if wanted == "any" or entry["type"] == kinds.get(wanted, wanted)]


def _usable(call: Call, bridge: str) -> bool:
    return call.allows(f"/sdn/zones/localnetwork/{bridge}", "SDN.Audit", "SDN.Use", any_of=True)


def _bridge(name: str) -> dict[str, Any]:
    return {
        "iface": name,
        "type": "bridge",
        "active": 1,
        "autostart": 1,
        "bridge_ports": "eno1",
        "bridge_vlan_aware": 1,
        "method": "manual",
        "priority": 3,
    }


ROUTES = (
    Route(method="GET", path="/nodes", handler=index),
    Route(method="GET", path="/nodes/{node}/network", handler=network, parameters=takes("type")),
)
