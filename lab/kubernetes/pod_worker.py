"""The loop that carries one pod from its binding to its removal."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

import httpx

from lab.kubernetes.api import ApiError, Object, node_actor
from lab.kubernetes.pod_runtime import PodRuntime
from lab.kubernetes.pod_scene import Decision
from lab.kubernetes.pod_status import Placement, Verdict, status_of
from lab.kubernetes.surroundings import Surroundings, now

RETRY_SECONDS = 0.5


class PodWorker:
    def __init__(self, runtime: PodRuntime, around: Surroundings) -> None:
        self.runtime = runtime
        self.scene = runtime.scene
        self.on_change: Callable[[], None] = lambda: None
        """Called when the pod has changed something about its node."""
        self._around = around
        self._poked = asyncio.Event()
        self._gone = False
        self._reported: Verdict | None = None
        self._accepted = now()
        self._started = now()

    def update(self, pod: Object | None) -> None:
        """The pod as it is now; None when it has been removed."""
        if pod is None:
            self._gone = True
        else:
            self.scene.pod = pod
        self.poke()

    def poke(self) -> None:
        self._poked.set()

    async def run(self) -> None:
        try:
            while not self._gone:
                self._poked.clear()
                if self.scene.pod["metadata"].get("deletionTimestamp"):
                    await self._remove()
                    return
                await self._sleep(await self._step())
        finally:
            await asyncio.shield(self.runtime.stop())

    async def _step(self) -> float | None:
        machine = self.scene.machine
        before = machine.offers()
        try:
            decision = await self.runtime.decide()
            await self._report(decision)
        except (ApiError, httpx.TransportError):
            return RETRY_SECONDS
        finally:
            if machine.offers() != before:
                self.on_change()
        return decision.again

    async def _sleep(self, seconds: float | None) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._poked.wait(), seconds)

    async def _report(self, decision: Decision) -> None:
        verdict, before = decision.verdict, self._reported
        if verdict == before and self._stands(verdict):
            return
        if verdict.state == "running" and (before is None or before.state != "running"):
            self._started = now()
        await self._around.api.patch(
            f"{self._path()}/status", {"status": self._status(verdict)}, actor=node_actor(self._node())
        )
        self._reported = verdict
        metadata = self.scene.pod["metadata"]
        state = verdict.reason or ("ready" if verdict.ready else "running")
        where = f"{metadata['namespace']}/{metadata['name']}"
        self._around.log.record("kubelet", "POD", where, state, node=self._node(), why=verdict.message[:300])
        if verdict.reason == "CrashLoopBackOff" or verdict.reason.startswith(("Err", "Image")):
            await self._around.event(self.scene.pod, "BackOff", verdict.message)

    def _stands(self, verdict: Verdict) -> bool:
        """Others mark pods of a node that is not ready as not ready; a kubelet that knows better says so again."""
        conditions = (self.scene.pod.get("status") or {}).get("conditions") or []
        return any(item["type"] == "Ready" and item["status"] == str(verdict.ready) for item in conditions)

    def _status(self, verdict: Verdict) -> Object:
        place = Placement(
            host_ip=self.scene.machine.node.address,
            pod_ip=self.scene.address,
            accepted=self._accepted,
            started=self._started,
            now=now(),
        )
        return status_of(self.scene.pod, verdict, place)

    async def _remove(self) -> None:
        """Containers first, then the object: nobody sees a pod gone whose program still runs."""
        await self.runtime.stop()
        self.on_change()
        body = {"gracePeriodSeconds": 0, "preconditions": {"uid": self.scene.pod["metadata"]["uid"]}}
        while not self._gone:
            try:
                await self._around.api.delete(self._path(), body, actor=node_actor(self._node()))
            except httpx.TransportError:
                await asyncio.sleep(RETRY_SECONDS)
            except ApiError as error:
                if error.status in {404, 409}:
                    return
                await asyncio.sleep(RETRY_SECONDS)
            else:
                return

    def _path(self) -> str:
        metadata = self.scene.pod["metadata"]
        return f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"

    def _node(self) -> str:
        return self.scene.machine.node.name
