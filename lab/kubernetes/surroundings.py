"""What all emulated kubelets of a cluster share."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from lab.faults import Faults
from lab.kubernetes.api import Api, ApiError, Object, node_actor
from lab.kubernetes.cilium_agent import REQUIRED
from lab.kubernetes.control_plane import Programs
from lab.kubernetes.endpoints import Endpoints
from lab.kubernetes.pod_program import SharedPorts
from lab.kubernetes.settings import ClusterSettings
from lab.pace import Pace
from lab.request_log import RequestLog

CRD_SECONDS = 0.5


@dataclass(kw_only=True)
class Surroundings:
    api: Api
    url: str
    settings: ClusterSettings
    directory: Path
    programs: Programs
    faults: Faults
    pace: Pace
    log: RequestLog
    endpoints: Endpoints
    trust: Path | None = None
    """Certificate authorities for programs that go out into the lab's internet."""
    ports: SharedPorts = field(default_factory=SharedPorts)
    not_shown: set[str] = field(default_factory=set)
    """What the lab could only assume; for the report."""
    _events: set[tuple[str, str, str]] = field(default_factory=set)
    """Each is written once; a kubelet would count up the one it has."""
    _cilium: bool = False
    _asked: float = 0.0

    async def cilium_registered(self) -> bool:
        """Whether the custom resources are served that an agent waits for; asked at most twice a second."""
        if not self._cilium and time.monotonic() - self._asked >= CRD_SECONDS:
            self._asked = time.monotonic()
            served = [REQUIRED[version] <= await self._served(version) for version in REQUIRED]
            self._cilium = all(served)
        return self._cilium

    async def _served(self, version: str) -> set[str]:
        listed = await self.api.find(f"/apis/cilium.io/{version}") or {}
        return {resource["name"] for resource in listed.get("resources") or []}

    async def event(self, pod: Object, reason: str, message: str, *, about: Object | None = None) -> None:
        """As the kubelet writes one, or the pod about something else; losing one is no harm."""
        metadata, moment = (about or pod)["metadata"], now()
        if (metadata["uid"], reason, message) in self._events:
            return
        self._events.add((metadata["uid"], reason, message))
        body: Object = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": f"{metadata['name'][:200]}.", "namespace": metadata["namespace"]},
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim" if about else "Pod",
                "name": metadata["name"],
                "namespace": metadata["namespace"],
                "uid": metadata["uid"],
            },
            "reason": reason,
            "message": message[:1000],
            "type": "Warning",
            "source": {"component": "kubelet", "host": pod["spec"]["nodeName"]},
            "firstTimestamp": moment,
            "lastTimestamp": moment,
            "count": 1,
        }
        actor = node_actor(pod["spec"]["nodeName"])
        try:
            await self.api.create(f"/api/v1/namespaces/{metadata['namespace']}/events", body, actor=actor)
        except ApiError as error:
            self.log.record("kubelet", "EVENT", f"{metadata['namespace']}/{metadata['name']}", error.status)


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
