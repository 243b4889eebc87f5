"""The status a kubelet reports for a pod, from what became of its containers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lab.kubernetes.api import Object

CREATING = "ContainerCreating"
CRASHING = "CrashLoopBackOff"
PULL_FAILED = "ErrImagePull"
CONFIG_ERROR = "CreateContainerConfigError"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What holds for all containers of a pod; the lab does not tell them apart."""

    state: Literal["waiting", "running"]
    reason: str = ""
    message: str = ""
    ready: bool = False
    restarts: int = 0
    exit_code: int | None = None
    """How the last run ended, where there was one."""


def creating(message: str = "") -> Verdict:
    return Verdict(state="waiting", reason=CREATING, message=message)


def refused(reason: str, message: str) -> Verdict:
    return Verdict(state="waiting", reason=reason, message=message)


def crashing(message: str, *, restarts: int, exit_code: int = 1) -> Verdict:
    return Verdict(state="waiting", reason=CRASHING, message=message, restarts=restarts, exit_code=exit_code)


def running(*, ready: bool, message: str = "", restarts: int = 0) -> Verdict:
    return Verdict(state="running", ready=ready, message=message, restarts=restarts)


@dataclass(frozen=True, kw_only=True)
class Placement:
    """Where the pod is and since when."""

    host_ip: str
    pod_ip: str | None
    accepted: str
    started: str
    now: str


def status_of(pod: Object, verdict: Verdict, place: Placement) -> Object:
    spec = pod["spec"]
    started = verdict.state == "running" or verdict.exit_code is not None
    containers = [_container(item, verdict, place) for item in spec["containers"]]
    status: Object = {
        "phase": "Running" if started else "Pending",
        "conditions": _conditions(pod, verdict, started=started, now=place.now),
        "hostIP": place.host_ip,
        "hostIPs": [{"ip": place.host_ip}],
        "startTime": place.accepted,
        "containerStatuses": containers,
    }
    if place.pod_ip:
        status |= {"podIP": place.pod_ip, "podIPs": [{"ip": place.pod_ip}]}
    if init := spec.get("initContainers"):
        status["initContainerStatuses"] = [_init_container(item, place, started=started) for item in init]
    return status


def _conditions(pod: Object, verdict: Verdict, *, started: bool, now: str) -> list[Object]:
    unready = {"reason": "ContainersNotReady", "message": verdict.message or "containers with unready status"}
    holds = {
        "PodReadyToStartContainers": started,
        "Initialized": started or not pod["spec"].get("initContainers"),
        "Ready": verdict.ready,
        "ContainersReady": verdict.ready,
    }
    before = {item["type"]: item for item in (pod.get("status") or {}).get("conditions") or []}
    return [
        {
            "type": kind,
            "status": str(value),
            "lastTransitionTime": _since(before.get(kind), str(value), now),
            **(unready if kind.endswith("Ready") and not value else {"reason": None, "message": None}),
        }
        for kind, value in holds.items()
    ]


def _since(before: Object | None, value: str, now: str) -> str:
    return str(before["lastTransitionTime"]) if before and before["status"] == value else now


def _container(container: Object, verdict: Verdict, place: Placement) -> Object:
    status = _identity(container)
    is_running = verdict.state == "running"
    waiting = {"waiting": {"reason": verdict.reason, "message": verdict.message}}
    status |= {
        "ready": verdict.ready,
        "started": is_running,
        "restartCount": verdict.restarts,
        "state": {"running": {"startedAt": place.started}} if is_running else waiting,
        "lastState": {},
    }
    if verdict.exit_code is not None:
        ended = {"exitCode": verdict.exit_code, "reason": "Error", "message": verdict.message}
        status["lastState"] = {"terminated": {**ended, "startedAt": place.started, "finishedAt": place.now}}
    return status


def _init_container(container: Object, place: Placement, *, started: bool) -> Object:
    """There is no runtime that could run them: they count as completed once, and only if, the pod itself runs."""
    completed = {"exitCode": 0, "reason": "Completed", "startedAt": place.started, "finishedAt": place.started}
    waiting = {"waiting": {"reason": "PodInitializing"}}
    restartable = container.get("restartPolicy") == "Always"
    state = {"terminated": completed} if started else waiting
    if restartable and started:
        state = {"running": {"startedAt": place.started}}
    return {**_identity(container), "ready": started, "restartCount": 0, "state": state, "lastState": {}}


def _identity(container: Object) -> Object:
    return {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": container.get("image", ""),
        "containerID": "",
    }
