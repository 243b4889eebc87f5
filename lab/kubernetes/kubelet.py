"""One emulated kubelet: its Node object, lease, CSINode and static pods."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import UTC, datetime

import httpx

from lab.kubernetes import node_object
from lab.kubernetes.api import MERGE, ApiError, Object, node_actor
from lab.kubernetes.machine import Machine
from lab.kubernetes.static_pods import static_pods
from lab.kubernetes.surroundings import Surroundings, now

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
CSI_NODES = "/apis/storage.k8s.io/v1/csinodes"
RETRY_SECONDS = 0.5
STRAY_CIDR = "172.31.{octet}.0/24"
"""Outside every pod subnet anybody would choose for a cluster of this kind."""


class Kubelet:
    def __init__(self, machine: Machine, around: Surroundings) -> None:
        self.machine = machine
        self._around = around
        self._api = around.api
        self._actor = node_actor(machine.node.name)
        self._poked = asyncio.Event()
        self._reported: bool | None = None
        self._applied = False
        self._drivers: dict[str, list[str]] | None = None
        self._stray = False
        self._complaint = ""

    @property
    def name(self) -> str:
        return self.machine.node.name

    @property
    def path(self) -> str:
        return f"/api/v1/nodes/{self.name}"

    def poke(self) -> None:
        self._poked.set()

    async def run(self) -> None:
        await self._around.pace.wait("kubelet")
        while True:
            self._poked.clear()
            try:
                await self._step()
                wait = RETRY_SECONDS if self._struck() or not self._applied else None
            except (ApiError, httpx.TransportError) as error:
                self._complain(str(error)[:300])
                wait = RETRY_SECONDS
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._poked.wait(), wait)

    def _complain(self, why: str) -> None:
        if why != self._complaint:
            self._complaint = why
            self._around.log.record("kubelet", "NODE", self.name, "error", why=why)

    async def _step(self) -> None:
        await self._register()
        await self._report()
        await self._apply()
        await self._report_drivers()
        await self._strike()

    async def _register(self) -> None:
        if self._stray and not self._mismatch():
            await self._api.delete(self.path)
            self._stray = self.machine.registered = False
        if self.machine.registered:
            return
        created = await self._create()
        await self._create_static_pods(created["metadata"]["uid"])
        await self.renew_lease()
        self.machine.registered = True
        self._reported, self._applied, self._drivers = None, False, None
        self._around.log.record("kubelet", "NODE", self.name, "registered", write=True)

    async def _create(self) -> Object:
        body = node_object.registration(self.machine.node)
        actor: dict[str, str] | None = self._actor
        if self._mismatch():
            stray = STRAY_CIDR.format(octet=self.machine.node.vmid % 256)
            body["spec"] |= {"podCIDR": stray, "podCIDRs": [stray]}
            self._stray, actor = True, None
        try:
            return await self._api.create("/api/v1/nodes", body, actor=actor)
        except ApiError as error:
            if error.status != 409:
                raise
            return await self._api.get(self.path, actor=self._actor)

    def _struck(self) -> bool:
        """Whether there is something to take back as soon as its fault is gone."""
        return self._stray or self.machine.cordoned or self.machine.unlabelled

    def _mismatch(self) -> bool:
        return self._around.faults.active("pod-cidr-mismatch", self.name) is not None

    async def _report(self) -> None:
        network = self.machine.network
        if network == self._reported:
            return
        status = node_object.status(self.machine.node, network=network, now=now())
        await self._api.patch(f"{self.path}/status", {"status": status}, actor=self._actor)
        self._reported = network
        state = "ready" if network else "not ready: no network"
        self._around.log.record("kubelet", "NODE", self.name, state, write=True)

    async def _apply(self) -> None:
        """What Talos adds to its Node in one request, on a worker with the kubelet's rights: all of it or nothing."""
        node = self.machine.node
        if self._applied:
            return
        metadata = {"labels": node_object.talos_labels(node), "annotations": node_object.talos_annotations(node)}
        body: Object = {"metadata": metadata}
        if taints := node_object.talos_taints(node):
            body["spec"] = {"taints": taints}
        await self._api.patch(self.path, body, actor=None if node.is_control_plane else self._actor)
        self._applied = True

    async def _report_drivers(self) -> None:
        drivers = dict(self.machine.drivers)
        if drivers == self._drivers:
            return
        listed = [{"name": name, "nodeID": self.name, "topologyKeys": keys} for name, keys in drivers.items()]
        body: Object = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSINode",
            "metadata": {"name": self.name, "ownerReferences": [await self._owner()]},
            "spec": {"drivers": listed},
        }
        try:
            await self._api.create(CSI_NODES, body, actor=self._actor)
        except ApiError as error:
            if error.status != 409:
                raise
            current = await self._api.get(f"{CSI_NODES}/{self.name}", actor=self._actor)
            current["spec"] = body["spec"]
            await self._api.replace(f"{CSI_NODES}/{self.name}", current, actor=self._actor)
        self._drivers = drivers

    async def _owner(self) -> Object:
        found = await self._api.get(self.path, actor=self._actor)
        return {"apiVersion": "v1", "kind": "Node", "name": self.name, "uid": found["metadata"]["uid"]}

    async def _create_static_pods(self, uid: str) -> None:
        for pod in static_pods(self.machine.node, uid):
            try:
                await self._api.create("/api/v1/namespaces/kube-system/pods", pod, actor=self._actor)
            except ApiError as error:
                if error.status != 409:
                    raise

    async def _strike(self) -> None:
        """Faults of the Node object itself; each is taken back when it is switched off."""
        faults = self._around.faults
        cordon = faults.active("node-cordoned", self.name) is not None
        if cordon != self.machine.cordoned:
            await self._api.patch(self.path, {"spec": {"unschedulable": cordon or None}}, kind=MERGE)
            self.machine.cordoned = cordon
        missing = faults.active("cilium-agent-missing", self.name) is not None
        if missing != self.machine.unlabelled:
            # A daemon set's node selector asks for this label: without it no agent belongs here.
            label = None if missing else "linux"
            await self._api.patch(self.path, {"metadata": {"labels": {"kubernetes.io/os": label}}}, kind=MERGE)
            self.machine.unlabelled = missing

    async def renew_lease(self) -> None:
        moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {"holderIdentity": self.name, "leaseDurationSeconds": 40, "renewTime": moment}
        try:
            await self._api.patch(f"{LEASES}/{self.name}", {"spec": spec}, kind=MERGE, actor=self._actor)
        except ApiError as error:
            if error.status != 404:
                raise
            body = {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": self.name, "namespace": "kube-node-lease"},
                "spec": spec,
            }
            await self._api.create(LEASES, body, actor=self._actor)
