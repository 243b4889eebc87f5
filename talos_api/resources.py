"""The COSI resources that are read here: where Talos 1.13 keeps them, and one of them as it arrives."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import yaml

from talos_api import cosi_pb2


@dataclass(frozen=True)
class Kind:
    namespace: str
    type: str


ADDRESS_STATUS = Kind("network", "AddressStatuses.net.talos.dev")
BOOTSTRAP_MANIFESTS_CONFIG = Kind("controlplane", "BootstrapManifestsConfigs.kubernetes.talos.dev")
DIAGNOSTIC = Kind("runtime", "Diagnostics.runtime.talos.dev")
DISK = Kind("runtime", "Disks.block.talos.dev")
HOSTNAME_STATUS = Kind("network", "HostnameStatuses.net.talos.dev")
KUBELET_SPEC = Kind("k8s", "KubeletSpecs.kubernetes.talos.dev")
LINK_STATUS = Kind("network", "LinkStatuses.net.talos.dev")
MACHINE_CONFIG = Kind("config", "MachineConfigs.config.talos.dev")
MACHINE_STATUS = Kind("runtime", "MachineStatuses.runtime.talos.dev")
MEMBER = Kind("cluster", "Members.cluster.talos.dev")
MOUNT_STATUS = Kind("runtime", "MountStatuses.runtime.talos.dev")
NODE_ADDRESS = Kind("network", "NodeAddresses.net.talos.dev")
NODENAME = Kind("k8s", "Nodenames.kubernetes.talos.dev")
OPERATOR_SPEC = Kind("network", "OperatorSpecs.net.talos.dev")
RESOURCE_DEFINITION = Kind("meta", "ResourceDefinitions.meta.cosi.dev")
SERVICE = Kind("runtime", "Services.v1alpha1.talos.dev")
STATIC_POD_STATUS = Kind("k8s", "StaticPodStatuses.kubernetes.talos.dev")
TIME_STATUS = Kind("runtime", "TimeStatuses.v1alpha1.talos.dev")
VOLUME_STATUS = Kind("runtime", "VolumeStatuses.block.talos.dev")

MACHINE_STATUS_ID = "machine"
TIME_STATUS_ID = "node"


@dataclass(frozen=True, kw_only=True)
class Resource:
    kind: Kind
    id: str
    version: str
    phase: str
    owner: str
    labels: dict[str, str] = field(default_factory=dict)
    spec: Any
    """Read from the YAML form, with Talos's YAML keys; None for a resource that is gone."""


class ChangeType(StrEnum):
    CREATED = "created"
    UPDATED = "updated"
    DESTROYED = "destroyed"
    BOOTSTRAPPED = "bootstrapped"
    """All that existed when the watch began has been sent."""
    ERRORED = "errored"
    NOOP = "noop"


@dataclass(frozen=True, kw_only=True)
class Change:
    type: ChangeType
    resource: Resource | None
    error: str = ""


def decode(message: cosi_pb2.Resource) -> Resource:
    metadata = message.metadata
    text = message.spec.yaml_spec
    return Resource(
        kind=Kind(metadata.namespace, metadata.type),
        id=metadata.id,
        version=metadata.version,
        phase=metadata.phase,
        owner=metadata.owner,
        labels=dict(metadata.labels),
        spec=yaml.safe_load(text) if text else None,
    )


def decode_change(event: cosi_pb2.Event) -> Change:
    kind = ChangeType(cosi_pb2.EventType.Name(event.event_type).lower())
    resource = decode(event.resource) if event.HasField("resource") else None
    return Change(type=kind, resource=resource, error=event.error)
