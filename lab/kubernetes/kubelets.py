"""All kubelets of a cluster: one watch on pods and one on nodes, whoever they belong to."""

from __future__ import annotations

import asyncio

import httpx

from lab.faults import Fault
from lab.kubernetes.api import ApiError, Object
from lab.kubernetes.informer import Informer, Key
from lab.kubernetes.kubelet import Kubelet
from lab.kubernetes.machine import Machine
from lab.kubernetes.node_object import Node
from lab.kubernetes.pod_runtime import PodRuntime
from lab.kubernetes.pod_worker import PodWorker
from lab.kubernetes.surroundings import Surroundings
from lab.kubernetes.tasks import Tasks

LEASE_SECONDS = 10.0
FAULT_SECONDS = 0.25


class Kubelets:
    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._kubelets: dict[str, Kubelet] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._workers: dict[str, tuple[PodWorker, asyncio.Task[None]]] = {}
        """By pod uid."""
        self._pods = Informer(around.api, "/api/v1/pods", self._pod_changed)
        self._nodes = Informer(around.api, "/api/v1/nodes", self._node_changed)
        self._seen: dict[Key, str] = {}
        self._tasks = Tasks()

    def start(self) -> None:
        for work in (self._pods.run(), self._nodes.run(), self._renew(), self._watch_faults()):
            self._tasks.start(work)

    async def add(self, node: Node) -> None:
        await self.remove(node.name)
        # Nobody can tell here whether the disk with the CNI's configuration is still the same: not ready until proven.
        kubelet = Kubelet(Machine(node), self._around)
        self._kubelets[node.name] = kubelet
        self._running[node.name] = self._tasks.start(kubelet.run())
        for pod in list(self._pods.objects.values()):
            self._consider(pod)

    async def remove(self, name: str) -> None:
        """Its containers end with it; the Node object is left to go stale."""
        kubelet, running = self._kubelets.get(name), self._running.pop(name, None)
        if kubelet is None or running is None:
            return
        kubelet.machine.alive = False
        running.cancel()
        mine = [uid for uid, (worker, _) in self._workers.items() if worker.scene.machine is kubelet.machine]
        await asyncio.gather(*(self._end(uid) for uid in mine))

    async def close(self) -> None:
        await asyncio.gather(*(self._end(uid) for uid in list(self._workers)))
        await self._tasks.close()

    async def _end(self, uid: str) -> None:
        _, task = self._workers.pop(uid)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    def _pod_changed(self, key: Key, pod: Object | None) -> None:
        if pod is None:
            if entry := self._workers.get(self._seen.pop(key, "")):
                entry[0].update(None)
            return
        self._consider(pod)

    def _consider(self, pod: Object) -> None:
        name, uid = pod["spec"].get("nodeName"), pod["metadata"]["uid"]
        kubelet = self._kubelets.get(name or "")
        if kubelet is None or not kubelet.machine.alive:
            return
        self._seen[pod["metadata"]["namespace"], pod["metadata"]["name"]] = uid
        if entry := self._workers.get(uid):
            entry[0].update(pod)
        elif (pod.get("status") or {}).get("phase") not in {"Succeeded", "Failed"}:
            self._begin(pod, kubelet)

    def _begin(self, pod: Object, kubelet: Kubelet) -> None:
        runtime = PodRuntime(pod, kubelet.machine, self._around)
        runtime.scene.node = self._nodes.objects.get(("", kubelet.name)) or {}
        worker = PodWorker(runtime, self._around)
        uid = pod["metadata"]["uid"]
        task = self._tasks.start(self._work(worker, kubelet))
        self._workers[uid] = (worker, task)
        task.add_done_callback(lambda _: self._workers.pop(uid, None))

    async def _work(self, worker: PodWorker, kubelet: Kubelet) -> None:
        """What a pod changes about its node, such as its network, concerns the kubelet and the other pods there."""
        worker.on_change = lambda: self._poke(kubelet)
        await worker.run()

    def _node_changed(self, key: Key, node: Object | None) -> None:
        for worker, _ in list(self._workers.values()):
            if worker.scene.machine.node.name == key[1] and node is not None:
                worker.scene.node = node

    def _poke(self, kubelet: Kubelet) -> None:
        kubelet.poke()
        for worker, _ in list(self._workers.values()):
            if worker.scene.machine is kubelet.machine:
                worker.poke()

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(LEASE_SECONDS)
            await asyncio.gather(*(self._renew_one(kubelet) for kubelet in list(self._kubelets.values())))

    async def _renew_one(self, kubelet: Kubelet) -> None:
        lies = self._around.faults.active("node-ready-lies", kubelet.name) is not None
        if not kubelet.machine.registered or not (kubelet.machine.alive or lies):
            return
        try:
            await kubelet.renew_lease()
        except (ApiError, httpx.TransportError) as error:
            self._around.log.record("kubelet", "LEASE", kubelet.name, "error", why=str(error)[:300])

    async def _watch_faults(self) -> None:
        before: list[Fault] = []
        while True:
            current = self._around.faults.all()
            if current != before:
                before = current
                for kubelet in list(self._kubelets.values()):
                    self._poke(kubelet)
            await asyncio.sleep(FAULT_SECONDS)
