"""What holds up a pod on its node, in the order in which a kubelet comes across it."""

from __future__ import annotations

import time

from lab.kubernetes import machine as machines
from lab.kubernetes.agent_pod import AgentPod
from lab.kubernetes.api import ApiError, Object
from lab.kubernetes.cilium_agent import cilium_endpoint, is_agent
from lab.kubernetes.csi_controller import CsiControllerPod
from lab.kubernetes.emulated_pod import EmulatedPod
from lab.kubernetes.machine import Machine
from lab.kubernetes.pod_scene import LATER, Behaviour, Decision, PodScene
from lab.kubernetes.pod_status import CONFIG_ERROR, creating, refused
from lab.kubernetes.program_pod import ProgramPod
from lab.kubernetes.surroundings import Surroundings
from lab.kubernetes.workloads import workload_of


class PodRuntime:
    def __init__(self, pod: Object, machine: Machine, around: Surroundings) -> None:
        self.scene = PodScene(pod, machine, around)
        self._behaviour = behaviour(self.scene)
        self._mounted = False
        self._announced = False
        self._pulled_at: float | None = None

    async def decide(self) -> Decision:
        """The first thing that holds it up, or how it runs; asked anew whenever something has changed."""
        if machines.is_mirror(self.scene.pod):
            self.scene.address = self.scene.machine.node.address
            return await self._behaviour.decide()
        return await self._held_up() or await self._behaviour.decide()

    async def stop(self) -> None:
        await self._behaviour.stop()
        self.scene.machine.release(self.scene.pod["metadata"]["uid"])

    async def _held_up(self) -> Decision | None:
        scene = self.scene
        if not self._mounted and (missing := await scene.inputs.missing(mounted=True)):
            await scene.around.event(scene.pod, "FailedMount", f"MountVolume.SetUp failed: {missing}")
            return Decision(verdict=creating(), again=LATER)
        self._mounted = True
        if absent := scene.inputs.drivers - scene.machine.drivers.keys():
            words = f"driver name {min(absent)} not found in the list of registered CSI drivers"
            await scene.around.event(scene.pod, "FailedMount", words)
            return Decision(verdict=creating(), again=LATER)
        if not self._has_network():
            return Decision(verdict=creating())
        await self._announce()
        if (remaining := self._pulling()) > 0:
            return Decision(verdict=creating(), again=remaining)
        if missing := await scene.inputs.missing(mounted=False):
            return Decision(verdict=refused(CONFIG_ERROR, missing), again=LATER)
        return None

    def _has_network(self) -> bool:
        """A pod that has its address keeps it, whatever becomes of the agent."""
        scene, machine = self.scene, self.scene.machine
        if scene.pod["spec"].get("hostNetwork"):
            scene.address = machine.node.address
        elif scene.address is None and machine.agent:
            before = (scene.pod.get("status") or {}).get("podIP")
            scene.address = machine.address_for(scene.pod["metadata"]["uid"], scene.pod_cidrs, before)
        return scene.address is not None

    async def _announce(self) -> None:
        """The agent's CiliumEndpoint for a pod on its network."""
        scene, identity = self.scene, self.scene.machine.agent_identity
        if self._announced or not identity or scene.address is None or scene.pod["spec"].get("hostNetwork"):
            return
        body = cilium_endpoint(scene.pod, scene.address, scene.machine.node.address)
        path = f"/apis/cilium.io/v2/namespaces/{scene.namespace}/ciliumendpoints"
        try:
            await scene.around.api.create(path, body, actor=identity)
        except ApiError as error:
            if error.status not in {404, 409}:
                raise
        self._announced = True

    def _pulling(self) -> float:
        """Seconds that the images of this pod still take; they stay on the node for the next one."""
        machine = self.scene.machine
        wanted = {container.get("image", "") for container in self.scene.pod["spec"]["containers"]}
        if wanted <= machine.images:
            return 0.0
        if self._pulled_at is None:
            self._pulled_at = time.monotonic() + self.scene.around.pace.seconds("image pull")
        remaining = self._pulled_at - time.monotonic()
        if remaining <= 0:
            machine.images |= wanted
        return remaining


def behaviour(scene: PodScene) -> Behaviour:
    if is_agent(scene.pod):
        return AgentPod(scene)
    if found := workload_of(scene.pod):
        return ProgramPod(scene, *found)
    return CsiControllerPod(scene) if machines.is_csi_controller(scene.pod) else EmulatedPod(scene)
