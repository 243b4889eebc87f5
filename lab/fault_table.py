"""The trials of the faults: which one strikes whom, in the order in which a growing cluster meets them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lab.fault_catalogue import CATALOGUE

BUILDING = {
    "GP": 8, "G1": 12, "G2": 15, "G3": 20, "G4": 20, "G5": 20, "G6": 10, "G7": 12, "G8b": 20, "G8": 60, "G9": 120,
    "G10": 60, "G11": 60, "G13a": 30, "G12c": 60, "G12a": 60, "G11b": 60, "G12": 30, "G12b": 30, "G13": 120, "G14": 180,
    "G15": 180, "G16": 180, "G17": 180, "G18": 180,
}  # fmt: skip
"""Seconds per gate while the cluster grows: short where a fault is awaited, long where programs have to start."""
LIVING = BUILDING | {
    "G8b": 12, "G8": 12, "G9": 15, "G10": 12, "G11": 12, "G13a": 12, "G12c": 15, "G12a": 12, "G12": 12, "G12b": 12,
    "G13": 15, "G14": 20, "G15": 20, "G16": 30, "G17": 15, "G18": 40,
}  # fmt: skip
"""Seconds per gate once all programs run."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    fault: str
    node: str | None = None
    """Whom it strikes: a node, a host or the name of an object."""
    options: Mapping[str, str] = field(default_factory=dict)
    about: str | None = None
    """The node that the message has to name, where one is concerned."""
    passing: bool = True
    """Whether waiting can help, so that a shorter form of the fault must not fail the run."""
    resource: str | None = None
    """Part of the name of the resource that must fail, for what only a provider can meet."""

    @property
    def gate(self) -> str:
        return CATALOGUE[self.fault].gate

    @property
    def stuck_kubelet(self) -> bool:
        """Whether the recovery ladder is the way out."""
        return self.fault.startswith("kubelet-") or self.fault == "node-ready-lies"

    @property
    def name(self) -> str:
        return "-".join([self.fault, *self.options.values()])


def _on(node: str, fault: str, *, passing: bool = True, **options: str) -> Trial:
    return Trial(fault=fault, node=node, about=node, passing=passing, options=options)


GROWING: tuple[Trial, ...] = (
    Trial(fault="token-expired", passing=False),
    Trial(fault="missing-privilege", options={"privilege": "VM.Allocate"}, passing=False),
    Trial(fault="proxmox-5xx"),
    Trial(fault="image-factory-down"),
    Trial(fault="image-download-fails", node="atlas", resource="image"),
    Trial(fault="storage-full", node="atlas", resource="image"),
    _on("infra-w-1", "vm-does-not-boot"),
    _on("infra-w-1", "wrong-vlan"),
    _on("infra-w-1", "foreign-ca", passing=False),
    _on("infra-w-1", "apply-lost"),
    _on("infra-w-1", "worker-never-registers"),
    _on("infra-w-1", "kubelet-waiting-for-volumes", ready="true"),
    _on("infra-cp-2", "kubelet-waiting-for-volumes", ready="false"),
    _on("infra-w-1", "kubelet-dead"),
    _on("infra-w-1", "double-address"),
    _on("infra-w-1", "diagnostics-warning"),
    Trial(fault="api-one-control-plane-only", node="infra-cp-1", about="infra-cp-2"),
    Trial(fault="vip-dead"),
    Trial(fault="chart-missing", node="cilium", resource="cilium"),
)
"""On a cluster that is not there yet: nothing behind the gate may come into being."""

APART: tuple[Trial, ...] = (
    _on("infra-cp-3", "etcd-never-joins"),
    _on("infra-cp-3", "etcd-learner-stays"),
)
"""In a lab of their own: what they hinder happens once in a cluster's life, and another fault needs it too."""

LIVING_TRIALS: tuple[Trial, ...] = (
    _on("infra-w-1", "node-ready-lies"),
    _on("infra-cp-2", "etcd-quorum-lost"),
    _on("infra-w-1", "cilium-agent-crashloop"),
    _on("infra-w-1", "cilium-agent-pending"),
    _on("infra-w-1", "cilium-agent-missing"),
    Trial(fault="operator-down"),
    _on("infra-w-1", "node-cordoned"),
    Trial(fault="dns-broken"),
    Trial(fault="git-bad-credentials", passing=False),
    Trial(fault="git-unreachable"),
    Trial(fault="csi-controller-crash"),
    _on("infra-w-1", "csi-node-plugin-missing"),
)
"""On a cluster that was proven healthy: every gate asks anew, and nothing behind the shut one may change."""
