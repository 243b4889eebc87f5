"""The operating system of the nodes."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from .values import Section, Word

Patch = dict[str, Any]
Extension = Annotated[str, Field(pattern=r"^[a-z0-9-]+/[a-z0-9._-]+$")]


class Patches(Section):
    """Machine configuration documents merged last, in the order all, role, node."""

    all: list[Patch] = Field(default_factory=list)
    controlplane: list[Patch] = Field(default_factory=list)
    worker: list[Patch] = Field(default_factory=list)
    nodes: dict[str, list[Patch]] = Field(default_factory=dict)


class KubeletMount(Section):
    source: Word
    destination: Word
    type: str = "bind"
    options: list[str] = Field(default_factory=lambda: ["bind", "rshared", "rw"])


class Talos(Section):
    bootstrap_node: Word
    """The control plane on which etcd is bootstrapped, once; it stays when nodes come and go."""
    extensions: list[Extension] = Field(default_factory=lambda: ["siderolabs/qemu-guest-agent"])
    patches: Patches = Patches()
    registry_mirrors: dict[str, Annotated[list[str], Field(min_length=1)]] = Field(default_factory=dict)
    """Registry host to mirror URLs, tried in order before the registry itself."""
    kubelet_mounts: list[KubeletMount] = Field(default_factory=list)
    host_dns_forward: bool = True
    """Cluster DNS forwards to the host's resolver (forwardKubeDNSToHost)."""
    allow_scheduling_on_control_planes: bool = False
    image_factory: Annotated[str, Field(pattern=r"^https://[^\s@]+[^/\s]$")] = "https://factory.talos.dev"
    coredns: bool = True
    """Talos's own CoreDNS; when false, `charts` must bring one."""
