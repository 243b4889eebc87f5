"""A real Kubernetes control plane with emulated kubelets."""

from lab.kubernetes.cluster import AlreadyBootstrapped, Cluster, Member
from lab.kubernetes.endpoints import EndpointPorts
from lab.kubernetes.node_object import Node

__all__ = ["AlreadyBootstrapped", "Cluster", "EndpointPorts", "Member", "Node"]
