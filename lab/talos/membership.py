"""The etcd members of one Talos cluster, and what only its control planes know."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from lab.talos.applied_config import AppliedConfig
from lab.talos.kubernetes import KubernetesCluster
from lab.talos.pki import Authority
from talos_api import machine_pb2


@dataclass(kw_only=True)
class Member:
    id: int
    name: str
    address: str
    learner: bool
    alive: bool = True

    def message(self) -> machine_pb2.EtcdMember:
        return machine_pb2.EtcdMember(
            id=self.id,
            # A member that has not started yet has no name.
            hostname=self.name,
            peer_urls=[f"https://{self.address}:2380"],
            client_urls=[f"https://{self.address}:2379"],
            is_learner=self.learner,
        )


class Membership:
    def __init__(self, cluster_id: str, kubernetes: KubernetesCluster, wake: Callable[[], None]) -> None:
        self.cluster_id = cluster_id
        self.kubernetes = kubernetes
        self.members: dict[str, Member] = {}
        self.joining = asyncio.Lock()
        """etcd takes one learner at a time."""
        self.bootstrapped = asyncio.Event()
        self.authority: asyncio.Future[Authority] = asyncio.get_running_loop().create_future()
        self._wake = wake

    def learn(self, config: AppliedConfig) -> None:
        """A control plane's config holds the CA key that trustd signs workers' certificates with."""
        if config.authority and not self.authority.done():
            self.authority.set_result(config.authority)

    @property
    def leader(self) -> Member | None:
        """The eldest living voter, as long as there is a quorum."""
        voters = [member for member in self.members.values() if not member.learner]
        living = [member for member in voters if member.alive]
        return living[0] if len(living) > len(voters) // 2 else None

    def admit(self, name: str, address: str, *, learner: bool) -> Member:
        """A former member of that name is removed first, as Talos does."""
        self.members.pop(name, None)
        seed = f"{self.cluster_id}/{name}/{len(self.members)}"
        id = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8], "big")
        self.members[name] = Member(id=id, name=name, address=address, learner=learner)
        self._wake()
        return self.members[name]

    def promote(self, name: str) -> None:
        self.members[name].learner = False
        self._wake()

    def set_alive(self, name: str, *, alive: bool) -> None:
        if name in self.members:
            self.members[name].alive = alive
            self._wake()

    def remove(self, name: str) -> None:
        self.members.pop(name, None)
        self._wake()

    def forfeit(self, name: str) -> str:
        """Hand leadership on; who has it now, or nothing when it was another's already."""
        leader = self.leader
        if leader is None or leader.name != name or len(self.members) == 1:
            return ""
        self.members[name] = self.members.pop(name)
        self._wake()
        heir = self.leader
        return heir.name if heir else ""
