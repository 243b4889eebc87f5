"""What the lab knows about one node while its kubelet runs."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_network
from itertools import islice

from lab.kubernetes.api import Object
from lab.kubernetes.node_object import Node

MIRROR = "kubernetes.io/config.mirror"
PROXMOX_DRIVER = "csi.proxmox.sinextra.dev"
REGION, ZONE = "topology.kubernetes.io/region", "topology.kubernetes.io/zone"


class Machine:
    def __init__(self, node: Node) -> None:
        self.node = node
        self.alive = True
        """Whether its kubelet runs."""
        self.registered = False
        self.network = False
        """A CNI has written its configuration: the node is Ready, and stays so when the agent goes."""
        self.agent = False
        """An agent is up right now: new pods get their network."""
        self.agent_identity: dict[str, str] = {}
        """Whose rights the agent's requests have; empty without an agent."""
        self.images: set[str] = set()
        self.drivers: dict[str, list[str]] = {}
        """Topology keys of the CSI drivers registered here."""
        self.cordoned = False
        """By a fault, not by somebody else."""
        self.unlabelled = False
        """Likewise, of the label that daemon sets select by."""
        self._addresses: dict[str, str] = {}

    def offers(self) -> tuple[bool, bool, tuple[str, ...]]:
        """What others on the node wait for."""
        return self.network, self.agent, tuple(self.drivers)

    def address_for(self, uid: str, pod_cidrs: list[str], before: str | None) -> str | None:
        """A pod keeps the address it has; a new one gets the first that is free. None where there are none."""
        if before:
            self._addresses[uid] = before
        if uid not in self._addresses and pod_cidrs:
            taken = set(self._addresses.values())
            # The first address of a node's range is the agent's own.
            free = islice((str(host) for host in ip_network(pod_cidrs[0]).hosts()), 1, None)
            self._addresses[uid] = next(address for address in free if address not in taken)
        return self._addresses.get(uid)

    def release(self, uid: str) -> None:
        self._addresses.pop(uid, None)


def csi_driver(pod: Object) -> str | None:
    """The driver that a CSI node plugin's pod registers with the kubelet."""
    for container in pod["spec"]["containers"]:
        for text in container.get("args") or []:
            flag, _, value = text.partition("=")
            if flag.lstrip("-") == "kubelet-registration-path":
                return str(value).split("/")[-2]
    return None


def topology(driver: str, labels: Mapping[str, str]) -> list[str]:
    """The keys a driver reports; LookupError where the node lacks the labels it needs."""
    if driver != PROXMOX_DRIVER:
        return []
    absent = [key for key in (REGION, ZONE) if not labels.get(key)]
    if absent:
        raise LookupError(f"rpc error: failed to get node info: node has no label {absent[0]}")
    return [REGION, ZONE]


def is_csi_controller(pod: Object) -> bool:
    images = [container.get("image", "") for container in pod["spec"]["containers"]]
    return any("csi-provisioner" in image for image in images)


def is_resolver(pod: Object) -> bool:
    return (pod["metadata"].get("labels") or {}).get("k8s-app") in {"kube-dns", "coredns"}


def is_mirror(pod: Object) -> bool:
    return MIRROR in (pod["metadata"].get("annotations") or {})
