"""The emulated CSI controller: volumes come from the Proxmox API, with the token in the mounted Secret."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

from lab.faults import Fault, Faults
from lab.kubernetes.csi_controller import PROVISIONER, SELECTED_NODE, CsiControllerPod, kibibytes
from lab.kubernetes.machine import PROXMOX_DRIVER, REGION, ZONE, Machine
from lab.kubernetes.pod_scene import PodScene
from lab.pace import Pace
from tests.lab_kubernetes import node


class Proxmox(BaseHTTPRequestHandler):
    """Takes note of what it is asked; knows one token."""

    requests: list[tuple[str, str, str]]

    def _answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length).decode()
        known = self.headers["Authorization"] == "PVEAPIToken=csi@pve!csi=good"
        self.server.requests.append((self.command, self.path, body))  # type: ignore[attr-defined]
        content = json.dumps({"data": {"avail": 4096}}).encode()
        self.send_response(200 if known else 401, None if known else "no such token")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_DELETE = _answer  # noqa: N815

    def log_message(self, *_: Any) -> None:
        """Not on the test's output."""


@pytest.fixture
def proxmox() -> Iterator[Any]:
    server = HTTPServer(("127.0.0.1", 0), Proxmox)
    server.requests = []  # type: ignore[attr-defined]
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


class Kubernetes:
    """Just enough of an API server, and who asked it for what."""

    def __init__(self, claims: list[dict[str, Any]], volumes: list[dict[str, Any]]) -> None:
        self.claims, self.volumes = claims, volumes
        self.created: list[dict[str, Any]] = []
        self.deleted: list[str] = []
        self.actors: set[str] = set()
        self.classes: list[dict[str, Any]] = []
        self.zones = ["atlas", "boreas"]

    async def get(self, path: str, *, actor: dict[str, str]) -> dict[str, Any]:
        self.actors.add(actor["Impersonate-User"])
        if path.endswith("/storageclasses"):
            return {"items": self.classes}
        if path.endswith("/nodes"):
            return {"items": [{"metadata": {"labels": {REGION: "home", ZONE: zone}}} for zone in self.zones]}
        if "storageclasses" in path:
            return {"metadata": {"name": "proxmox"}, "parameters": {"storage": "local-lvm"}}
        if "/nodes/" in path:
            return {"metadata": {"labels": {REGION: "home", ZONE: path.rpartition("-")[2]}}}
        return {"items": self.claims if path.endswith("claims") else self.volumes}

    async def create(self, path: str, body: dict[str, Any], *, actor: dict[str, str]) -> dict[str, Any]:
        self.created.append(body)
        return body

    async def delete(self, path: str, *, actor: dict[str, str]) -> dict[str, Any]:
        self.deleted.append(path)
        return {}


class Around(SimpleNamespace):
    """What a pod sees of the lab."""

    async def event(self, pod: dict[str, Any], reason: str, message: str, *, about: dict[str, Any]) -> None:
        self.events.append((reason, message, about["metadata"]["name"]))


def claim(**changes: Any) -> dict[str, Any]:
    annotations = {PROVISIONER: PROXMOX_DRIVER, SELECTED_NODE: "w-atlas"}
    return {
        "metadata": {"name": "data", "namespace": "apps", "uid": "u7", "annotations": annotations},
        "spec": {
            "storageClassName": "proxmox",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
        "status": {"phase": "Pending"},
        **changes,
    }


def controller(proxmox: Any, kubernetes: Kubernetes, known: bool = True) -> tuple[CsiControllerPod, Around]:
    around = Around(api=kubernetes, faults=Faults(), pace=Pace(), trust=None, events=[], log=None)
    pod = {
        "metadata": {"name": "csi-controller-0", "namespace": "csi-proxmox", "uid": "p"},
        "spec": {
            "nodeName": "w-atlas",
            "serviceAccountName": "csi",
            "containers": [{"name": "csi-provisioner", "image": "csi-provisioner:v6"}],
            "volumes": [{"name": "config", "secret": {"secretName": "proxmox-csi-plugin"}}],
        },
    }
    scene = PodScene(pod, Machine(node("w-atlas", "10.0.0.21", "worker")), around)  # type: ignore[arg-type]
    url = f"http://127.0.0.1:{proxmox.server_port}/api2/json"
    cluster = {"url": url, "token_id": "csi@pve!csi", "token_secret": "good" if known else "bad", "region": "home"}
    text = json.dumps({"clusters": [cluster]}).encode()
    scene.inputs._found["Secret", "proxmox-csi-plugin"] = {"config.yaml": text}
    return CsiControllerPod(scene), around


async def test_a_claim_gets_a_volume_of_its_nodes_host(proxmox: Any) -> None:
    kubernetes = Kubernetes([claim()], [])
    made, around = controller(proxmox, kubernetes)
    decision = await made.decide()
    assert decision.verdict.ready
    method, path, body = proxmox.requests[0]
    assert (method, path) == ("POST", "/api2/json/nodes/atlas/storage/local-lvm/content")
    assert "size=1048576K" in body
    volume = kubernetes.created[0]["spec"]
    assert volume["csi"]["volumeHandle"] == "home/atlas/local-lvm/vm-9999-pvc-u7"
    assert volume["claimRef"]["uid"] == "u7"
    assert kubernetes.actors == {"system:serviceaccount:csi-proxmox:csi"}
    assert around.events == []


async def test_the_scheduler_is_told_once_where_there_is_room(proxmox: Any) -> None:
    kubernetes = Kubernetes([], [])
    parameters = {"storage": "local-lvm"}
    kubernetes.classes = [
        {"metadata": {"name": "proxmox"}, "provisioner": PROXMOX_DRIVER, "parameters": parameters},
        {"metadata": {"name": "nfs"}, "provisioner": "nfs.csi.k8s.io"},
    ]
    made, _ = controller(proxmox, kubernetes)
    await made.decide()
    await made.decide()
    asked = sorted(path for _, path, _ in proxmox.requests)
    assert asked == [f"/api2/json/nodes/{zone}/storage/local-lvm/status" for zone in ("atlas", "boreas")]
    zones = sorted(item["nodeTopology"]["matchLabels"][ZONE] for item in kubernetes.created)
    assert zones == ["atlas", "boreas"]
    assert {item["capacity"] for item in kubernetes.created} == {"4096"}


async def test_a_wrong_token_leaves_the_claim_pending_and_says_why(proxmox: Any) -> None:
    kubernetes = Kubernetes([claim()], [])
    made, around = controller(proxmox, kubernetes, known=False)
    await made.decide()
    assert kubernetes.created == []
    reason, message, name = around.events[0]
    assert (reason, name) == ("ProvisioningFailed", "data")
    assert "401" in message
    assert "bad" not in message


async def test_claims_of_others_are_left_alone(proxmox: Any) -> None:
    other = claim(metadata={"name": "x", "namespace": "a", "uid": "1", "annotations": {PROVISIONER: "nfs"}})
    bound = claim(status={"phase": "Bound"})
    made, _ = controller(proxmox, Kubernetes([other, bound], []))
    await made.decide()
    assert proxmox.requests == []


async def test_a_released_volume_is_removed_from_proxmox_too(proxmox: Any) -> None:
    spec = {
        "csi": {"driver": PROXMOX_DRIVER, "volumeHandle": "home/atlas/local-lvm/vm-9999-pvc-u7"},
        "persistentVolumeReclaimPolicy": "Delete",
    }
    volume = {"metadata": {"name": "pvc-u7"}, "spec": spec, "status": {"phase": "Released"}}
    kept = {**volume, "spec": {**spec, "persistentVolumeReclaimPolicy": "Retain"}}
    kubernetes = Kubernetes([], [kept, volume])
    made, _ = controller(proxmox, kubernetes)
    await made.decide()
    path = "/api2/json/nodes/atlas/storage/local-lvm/content/local-lvm:vm-9999-pvc-u7"
    assert [(method, path) for method, path, _ in proxmox.requests] == [("DELETE", path)]
    assert kubernetes.deleted == ["/api/v1/persistentvolumes/pvc-u7"]


async def test_a_crashing_controller_provisions_nothing(proxmox: Any) -> None:
    made, around = controller(proxmox, Kubernetes([claim()], []))
    around.faults.add(Fault(name="csi-controller-crash"))
    decision = await made.decide()
    assert decision.verdict.reason == "CrashLoopBackOff"
    assert proxmox.requests == []


@pytest.mark.parametrize(("text", "size"), [("1Gi", 1048576), ("512Mi", 524288), ("2048", 2), ("1", 1)])
def test_sizes_are_read_in_binary_units(text: str, size: int) -> None:
    assert kibibytes(text) == size
