"""A pod of which nothing runs: what its containers would do is taken for granted, and said so in the report."""

from __future__ import annotations

from lab.kubernetes import machine as machines
from lab.kubernetes.pod_scene import LATER, Decision, PodScene, workload_name


class EmulatedPod:
    def __init__(self, scene: PodScene) -> None:
        self._scene = scene
        self._driver = machines.csi_driver(scene.pod)

    async def decide(self) -> Decision:
        scene = self._scene
        if machines.is_mirror(scene.pod):
            return scene.runs()
        if machines.is_resolver(scene.pod) and scene.struck_by("dns-broken"):
            failed = "Readiness probe failed: HTTP probe failed with statuscode: 503"
            return scene.runs(ready=False, message=failed, again=LATER)
        if self._driver:
            return self._register(self._driver)
        if scene.labels.get("k8s-app") == "flannel":
            scene.machine.agent = scene.machine.network = True
        self._admit()
        return scene.runs()

    async def stop(self) -> None:
        if self._driver:
            self._scene.machine.drivers.pop(self._driver, None)

    def _register(self, driver: str) -> Decision:
        """A CSI node plugin: the kubelet lists its driver on the node's CSINode."""
        scene = self._scene
        if scene.struck_by("csi-node-plugin-missing"):
            scene.machine.drivers.pop(driver, None)
            return scene.refuses("ImagePullBackOff", "fault csi-node-plugin-missing: the image cannot be pulled")
        try:
            labels = scene.node.get("metadata", {}).get("labels") or {}
            scene.machine.drivers[driver] = machines.topology(driver, labels)
        except LookupError as error:
            return scene.crash(str(error.args[0]))
        self._admit()
        return scene.runs()

    def _admit(self) -> None:
        scene = self._scene
        where = f"{scene.namespace}/{workload_name(scene.pod)}"
        if scene.pod["spec"].get("restartPolicy", "Always") == "Always":
            scene.around.not_shown.add(f"{where}: emulated, ready without having been asked")
        else:
            scene.around.not_shown.add(f"{where}: would run to completion; nothing in the lab runs it")
