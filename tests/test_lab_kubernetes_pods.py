"""What an emulated kubelet says about a pod, and what it gives to its containers."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from lab.kubernetes.api import ApiError
from lab.kubernetes.crash_loop import CrashLoop
from lab.kubernetes.pod_inputs import PodInputs, expand, field_value
from lab.kubernetes.pod_scene import workload_name
from lab.kubernetes.pod_status import Placement, Verdict, crashing, creating, running, status_of
from lab.kubernetes.references import references
from lab.kubernetes.workloads import WORKLOADS, command_line, image_name, mounts, moved, probe, workload_of

PLACE = Placement(host_ip="10.0.0.1", pod_ip="10.244.0.2", accepted="a", started="s", now="n")
METADATA = {"name": "p", "namespace": "apps", "uid": "u", "labels": {"app": "x"}}


def pod(**spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "busybox"}]
    return {"metadata": METADATA, "spec": {"nodeName": "w-1", "containers": containers, **spec}}


def status(verdict: Verdict, **spec: Any) -> dict[str, Any]:
    return status_of(pod(**spec), verdict, PLACE)


def condition(made: dict[str, Any], kind: str) -> str:
    return next(str(item["status"]) for item in made["conditions"] if item["type"] == kind)


def test_a_pod_that_is_being_created_is_pending() -> None:
    made = status(creating())
    assert made["phase"] == "Pending"
    assert made["containerStatuses"][0]["state"]["waiting"]["reason"] == "ContainerCreating"
    assert condition(made, "Ready") == "False"


def test_a_crashing_pod_has_run_before() -> None:
    made = status(crashing("no route", restarts=3, exit_code=137))
    container = made["containerStatuses"][0]
    assert made["phase"] == "Running"
    assert container["restartCount"] == 3
    assert container["state"]["waiting"] == {"reason": "CrashLoopBackOff", "message": "no route"}
    assert container["lastState"]["terminated"]["exitCode"] == 137
    assert condition(made, "Ready") == "False"


@pytest.mark.parametrize("ready", [True, False])
def test_running_and_ready_are_two_things(ready: bool) -> None:
    made = status(running(ready=ready))
    assert made["phase"] == "Running"
    assert made["containerStatuses"][0]["ready"] is ready
    assert condition(made, "ContainersReady") == str(ready)


def test_init_containers_are_completed_only_when_the_pod_runs() -> None:
    init = [{"name": "config"}, {"name": "sidecar", "restartPolicy": "Always"}]
    waiting = status(creating(), initContainers=init)
    assert all("waiting" in item["state"] for item in waiting["initContainerStatuses"])
    assert condition(waiting, "Initialized") == "False"
    started = status(running(ready=True), initContainers=init)
    assert started["initContainerStatuses"][0]["state"]["terminated"]["reason"] == "Completed"
    assert "running" in started["initContainerStatuses"][1]["state"]


def test_a_condition_that_holds_keeps_its_time() -> None:
    before = pod()
    before["status"] = {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "earlier"}]}
    made = status_of(before, running(ready=True), PLACE)
    times = {item["type"]: item["lastTransitionTime"] for item in made["conditions"]}
    assert times["Ready"] == "earlier"
    assert times["ContainersReady"] == "n"


def test_crashes_are_tried_again_later_and_later() -> None:
    loop = CrashLoop(scale=1.0)
    waits = []
    for _ in range(8):
        loop.failed("x", 100.0)
        waits.append(loop.resting(100.0))
    assert waits == [10, 20, 40, 80, 160, 300, 300, 300]
    assert loop.restarts == 8
    assert loop.resting(1000.0) == 0


def everything() -> dict[str, Any]:
    sources = [{"secret": {"name": "token", "items": [{"key": "a", "path": "b"}]}}, {"serviceAccountToken": {}}]
    return pod(
        volumes=[
            {"name": "config", "configMap": {"name": "settings"}},
            {"name": "maybe", "secret": {"secretName": "extra", "optional": True}},
            {"name": "mixed", "projected": {"sources": sources}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "disk"}},
            {"name": "scratch", "emptyDir": {}},
        ],
        containers=[
            {
                "name": "main",
                "image": "busybox",
                "env": [
                    {"name": "LEVEL", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "level"}}},
                    {"name": "WHERE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
                    {"name": "BOTH", "value": "$(WHERE)/$(LEVEL)/$(NONE)"},
                ],
                "envFrom": [{"prefix": "P_", "secretRef": {"name": "token"}}],
            }
        ],
    )


def test_every_reference_of_a_pod_is_found() -> None:
    found = {(item.kind, item.name, item.mounted, item.optional) for item in references(everything())}
    assert found == {
        ("ConfigMap", "settings", True, False),
        ("Secret", "extra", True, True),
        ("Secret", "token", True, False),
        ("PersistentVolumeClaim", "disk", True, False),
        ("ConfigMap", "settings", False, False),
        ("Secret", "token", False, False),
    }


class Shelf:
    """Objects by the end of their path; what is not there is not found, what is None is forbidden."""

    def __init__(self, **objects: dict[str, Any] | None) -> None:
        self.objects = objects
        self.actors: list[str] = []

    async def find(self, path: str, *, actor: dict[str, str]) -> dict[str, Any] | None:
        self.actors.append(actor["Impersonate-User"])
        name = path.rpartition("/")[2]
        if name in self.objects and self.objects[name] is None:
            raise ApiError(403, "no relationship found between node and this object")
        return self.objects.get(name)


def secret(**data: str) -> dict[str, Any]:
    return {"kind": "Secret", "data": {name: b64encode(text.encode()).decode() for name, text in data.items()}}


FULL: dict[str, Any] = {
    "settings": {"kind": "ConfigMap", "data": {"level": "7"}},
    "token": secret(a="1"),
    "disk": {"kind": "PersistentVolumeClaim", "metadata": {"name": "disk"}, "status": {"phase": "Bound"}},
}


def inputs(**objects: Any) -> PodInputs:
    return PodInputs(Shelf(**objects), everything())  # type: ignore[arg-type]


async def test_nothing_is_missing_when_all_that_is_not_optional_is_there() -> None:
    given = inputs(**FULL)
    assert await given.missing(mounted=True) is None
    assert await given.missing(mounted=False) is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"settings": {}}, 'configmap "settings" not found'),
        ({"disk": {"kind": "PersistentVolumeClaim", "metadata": {"name": "disk"}}}, "not bound"),
        ({"token": secret(other="1")}, "couldn't find key a in Secret apps/token"),
        ({"token": None}, "no relationship found"),
    ],
)
async def test_what_is_missing_is_said_in_the_kubelets_words(change: dict[str, Any], words: str) -> None:
    objects = {name: value for name, value in {**FULL, **change}.items() if value != {}}
    assert words in (await inputs(**objects).missing(mounted=True) or "")


async def test_references_are_read_with_the_kubelets_rights() -> None:
    shelf = Shelf(**FULL)
    await PodInputs(shelf, everything()).missing(mounted=True)  # type: ignore[arg-type]
    assert set(shelf.actors) == {"system:node:w-1"}


async def test_containers_get_their_variables_and_volumes(tmp_path: Path) -> None:
    given = inputs(**FULL)
    await given.missing(mounted=True)
    await given.missing(mounted=False)
    environment = given.environment(everything()["spec"]["containers"][0])
    assert environment == {"P_a": "1", "LEVEL": "7", "WHERE": "apps", "BOTH": "apps/7/$(NONE)"}
    written = given.write_volumes(tmp_path)
    assert (written["config"] / "level").read_text() == "7"
    assert (written["mixed"] / "b").read_text() == "1"
    assert written["scratch"].is_dir()
    assert "data" not in written


def test_fields_of_the_pod_can_be_asked_for() -> None:
    assert field_value(pod(), "metadata.labels['app']") == "x"
    assert field_value(pod(), "spec.nodeName") == "w-1"
    assert field_value(pod(), "status.podIP") is None
    assert expand("$(A)-$(B)", {"A": "1"}) == "1-$(B)"


def ports(program: str, port: int) -> int:
    return 10000 + port + (100 if program == "notification-controller" else 0)


def test_images_are_known_by_their_last_name() -> None:
    assert image_name("ghcr.io/fluxcd/source-controller:v1.9.4@sha256:00") == "source-controller"
    found = workload_of(pod(containers=[{"name": "m", "image": "quay.io/cilium/operator-generic:v1.20.1"}]))
    assert found is not None
    assert found[0].program == "cilium-operator"
    assert workload_of(pod()) is None


def test_our_arguments_come_last_and_name_free_ports(tmp_path: Path) -> None:
    workload = WORKLOADS["source-controller"]
    given = ["--events-addr=http://notification-controller.flux-system.svc.cluster.local./", "--log-level=info"]
    line = command_line(workload, given, ports=ports, directory=tmp_path)
    assert line[:2] == given
    assert "--storage-adv-addr=127.0.0.1:19090" in line[2:]
    assert "--storage-addr=127.0.0.1:19090" in line[2:]
    assert "--events-addr=http://127.0.0.1:19190/" in line[2:]


def test_a_program_finds_what_its_image_holds_in_the_pods_directory(tmp_path: Path) -> None:
    line = command_line(WORKLOADS["flux-operator"], [], ports=ports, directory=tmp_path)
    assert f"--storage-path={tmp_path / 'data'}" in line
    assert "--web-server-port=19080" in line


def test_mount_paths_are_replaced_by_the_longest_match() -> None:
    container = {
        "volumeMounts": [
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108
            {"name": "config", "mountPath": "/tmp/cilium/config-map/"},  # noqa: S108
            {"name": "host", "mountPath": "/sys"},
        ]
    }
    places = mounts(container, {"tmp": Path("/lab/t"), "config": Path("/lab/c")})
    assert moved("--config-dir=/tmp/cilium/config-map", places) == "--config-dir=/lab/c"
    assert moved("/tmp/x", places) == "/lab/t/x"  # noqa: S108
    assert moved("--a=/tmpfile", places) == "--a=/tmpfile"
    assert moved("--a=/sys", places) == "--a=/sys"


def test_readiness_is_asked_where_the_program_was_told_to_listen() -> None:
    container = {
        "ports": [{"name": "health", "containerPort": 9234}],
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": "health"}},
    }
    assert probe(container, WORKLOADS["operator-generic"], ports) == "http://127.0.0.1:19234/healthz"
    assert probe({}, WORKLOADS["operator-generic"], ports) is None
    container["readinessProbe"] = {"httpGet": {"port": 1}}
    with pytest.raises(LookupError, match="port 1"):
        probe(container, WORKLOADS["operator-generic"], ports)


@pytest.mark.parametrize(
    ("kind", "owner", "name"),
    [("ReplicaSet", "cilium-operator-6d4b75cb6d", "cilium-operator"), ("DaemonSet", "cilium", "cilium")],
)
def test_a_pod_knows_the_workload_it_belongs_to(kind: str, owner: str, name: str) -> None:
    made = pod()
    assert workload_name(made) == "p"
    made["metadata"] = {**METADATA, "ownerReferences": [{"kind": kind, "name": owner, "controller": True}]}
    assert workload_name(made) == name
