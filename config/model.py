"""One cluster, as its stack file describes it."""

from __future__ import annotations

import hashlib
import json
from ipaddress import IPv4Network
from typing import Annotated, Any

from pydantic import Field, model_validator

from .cilium import Cilium, Mesh, Pool
from .delivery import ChartSpec, CrdSet, Flux, Namespace, NamespaceName, Sealing, Storage
from .network import ClusterNetwork
from .nodes import Node
from .proxmox import Proxmox
from .talos import Talos
from .timing import DEADLINES, Recovery, Rollout, Seconds, Timeouts
from .values import LABEL_NAME, Address, Section, VariableName, Version


class Versions(Section):
    """Exact releases; the defaults are the set the project is tested with."""

    talos: Version = "1.13.9"
    talos_contract: Version = "1.13.9"
    """The Talos release whose configuration format the cluster was born with; it stays when talos moves."""
    kubernetes: Version = "1.36.4"
    cilium: Version = "1.20.1"
    gateway_api: Version = "1.6.1"
    flux_operator: Version = "0.58.1"
    flux: Version = "2.9.4"
    sealed_secrets: Version = "2.18.4"
    """Chart version."""
    proxmox_csi: Version = "0.5.6"
    """Chart version."""


class ClusterConfig(Section):
    name: Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", max_length=32)]
    versions: Versions = Versions()
    proxmox: Proxmox
    network: ClusterNetwork
    talos: Talos
    nodes: Annotated[dict[Annotated[str, Field(pattern=LABEL_NAME)], Node], Field(min_length=1)]
    cilium: Cilium
    namespaces: dict[NamespaceName, Namespace] = Field(default_factory=dict)
    crds: list[CrdSet] = Field(default_factory=list)
    """CRDs beyond those of the Gateway API."""
    charts: list[ChartSpec] = Field(default_factory=list)
    lb_pools: dict[NamespaceName, Pool] = Field(default_factory=dict)
    lb_addresses: dict[VariableName, Address] = Field(default_factory=dict)
    """Fixed addresses of named services, each inside a pool; Flux substitutes them by name."""
    mesh: Mesh = Mesh()
    storage: Storage = Storage(role="none")
    sealing: Sealing
    flux: Flux
    recovery: Recovery = Recovery()
    rollout: Rollout = Rollout()
    deadlines: dict[str, Seconds] = Field(
        default_factory=dict, json_schema_extra={"propertyNames": {"enum": list(DEADLINES)}}
    )
    """Gate to seconds, over the defaults."""
    timeouts: Timeouts = Timeouts()
    strict_placement: bool = False
    """Make control planes that share a host an error."""
    protect_nodes: bool = True

    @model_validator(mode="before")
    @classmethod
    def _derive(cls, data: Any) -> Any:
        return derive(data) if isinstance(data, dict) else data

    @property
    def control_planes(self) -> dict[str, Node]:
        return {name: node for name, node in self.nodes.items() if node.role == "controlplane"}

    @property
    def workers(self) -> dict[str, Node]:
        return {name: node for name, node in self.nodes.items() if node.role == "worker"}

    @property
    def native_routing_cidr(self) -> IPv4Network:
        return self.cilium.native_routing_cidr or self.network.pods

    @property
    def external_cloud_provider(self) -> bool:
        """Whether nodes wait for a cloud controller, which then has to be among the charts."""
        return any(chart.gate == "G11b" for chart in self.charts)

    def deadline(self, gate: str) -> int:
        return self.deadlines.get(gate, DEADLINES[gate])

    @property
    def digest(self) -> str:
        """Identity of the whole desired state."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


def derive(data: dict[str, Any]) -> dict[str, Any]:
    """Fills in the paths that follow from the cluster's name."""
    home = f"gitops/clusters/{data.get('name')}"
    sections = {"flux": {"path": home}, "sealing": {"directory": f"{home}/sealed"}}
    filled = {key: default | (data.get(key) or {}) for key, default in sections.items() if _mapping(data.get(key))}
    return data | filled


def _mapping(value: Any) -> bool:
    return value is None or isinstance(value, dict)
