"""Rules on the nodes and on what refers to them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from .errors import Problem, nearest
from .model import ClusterConfig
from .nodes import Node


def vm_ids_are_unique(cluster: ClusterConfig) -> Iterator[Problem]:
    yield from _unique(cluster.nodes, "vmid", "VM id")


def macs_are_unique(cluster: ClusterConfig) -> Iterator[Problem]:
    yield from _unique(cluster.nodes, "mac", "MAC address")


def _unique(nodes: dict[str, Node], field: str, what: str) -> Iterator[Problem]:
    holders: dict[Any, list[str]] = defaultdict(list)
    for name, node in nodes.items():
        holders[getattr(node, field)].append(name)
    for value, (first, *others) in holders.items():
        for name in others:
            yield Problem(
                path=f"cluster.nodes.{name}.{field}",
                message=f"{what} {value} is used by {first} and by {name}",
                fix=f"give {name} a {what} of its own",
            )


def hosts_exist(cluster: ClusterConfig) -> Iterator[Problem]:
    for name, node in cluster.nodes.items():
        if node.host not in cluster.proxmox.hosts:
            known = ", ".join(cluster.proxmox.hosts)
            yield Problem(
                path=f"cluster.nodes.{name}.host",
                message=f"{name} stands on {node.host}, which is not among proxmox.hosts ({known})",
                fix=nearest(node.host, cluster.proxmox.hosts, f"add {node.host} to proxmox.hosts"),
            )


def control_planes_are_odd(cluster: ClusterConfig) -> Iterator[Problem]:
    names = list(cluster.control_planes)
    if len(names) % 2 == 0:
        yield Problem(
            path="cluster.nodes",
            message=f"{len(names)} control planes ({', '.join(names) or 'none'}): an even number makes etcd no safer",
            fix=f"have {len(names) + 1}, or {len(names) - 1}" if names else "give a node role: controlplane",
        )


def control_planes_are_apart(cluster: ClusterConfig) -> Iterator[Problem]:
    """Only where it could be otherwise: three on two hosts have to share one."""
    hosts = Counter(node.host for node in cluster.control_planes.values())
    available = len(cluster.proxmox.hosts)
    allowed = -(-len(cluster.control_planes) // available)
    for host, count in hosts.items():
        if count > allowed:
            names = [name for name, node in cluster.control_planes.items() if node.host == host]
            yield Problem(
                path=f"cluster.nodes.{names[-1]}.host",
                message=f"control planes {', '.join(names)} share the host {host} while there are {available} hosts",
                fix="spread them, so that one host can fail",
                warning=not cluster.strict_placement,
            )


def control_planes_are_strong_enough(cluster: ClusterConfig) -> Iterator[Problem]:
    for name, node in cluster.control_planes.items():
        for field, least in (("cores", 2), ("memory", 2048)):
            if (value := getattr(node, field)) < least:
                yield Problem(
                    path=f"cluster.nodes.{name}.{field}",
                    message=f"{value} is too little for the control plane {name}",
                    fix=f"write at least {least}",
                )


def something_can_be_scheduled(cluster: ClusterConfig) -> Iterator[Problem]:
    if not cluster.workers and not cluster.talos.allow_scheduling_on_control_planes:
        yield Problem(
            path="cluster.talos.allow_scheduling_on_control_planes",
            message="is false and no node is a worker: nothing could ever be scheduled",
            fix="add a worker, or set it to true",
        )


def bootstrap_node_is_a_control_plane(cluster: ClusterConfig) -> Iterator[Problem]:
    name = cluster.talos.bootstrap_node
    if name not in cluster.control_planes:
        what = "is a worker" if name in cluster.workers else "is not among the nodes"
        yield Problem(
            path="cluster.talos.bootstrap_node",
            message=f"{name} {what}; etcd is bootstrapped on a control plane",
            fix=nearest(name, cluster.control_planes, f"name one of {', '.join(cluster.control_planes)}"),
        )


def named_nodes_exist(cluster: ClusterConfig) -> Iterator[Problem]:
    named: dict[str, Iterable[str]] = {
        "cluster.rollout.nodes": cluster.rollout.nodes,
        "cluster.talos.patches.nodes": cluster.talos.patches.nodes,
    }
    for path, names in named.items():
        for name in names:
            if name not in cluster.nodes:
                yield Problem(
                    path=path,
                    message=f"{name} is not among the nodes",
                    fix=nearest(name, cluster.nodes, "remove it"),
                )


def disks_differ_in_size(cluster: ClusterConfig) -> Iterator[Problem]:
    for name, node in cluster.nodes.items():
        sizes = Counter([node.disk, *(disk.size for disk in node.disks)])
        for size in (size for size, count in sizes.items() if count > 1):
            yield Problem(
                path=f"cluster.nodes.{name}.disks",
                message=f"{sizes[size]} disks of {name} are {size} GiB; Talos tells disks apart by size",
                fix="give each disk of a node a size of its own",
            )
