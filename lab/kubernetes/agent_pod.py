"""A Cilium agent's pod: it brings up its node's network, if a real one could."""

from __future__ import annotations

from lab.kubernetes import cilium_agent
from lab.kubernetes.api import ApiError, account_actor
from lab.kubernetes.pod_scene import SOON, Decision, PodScene


class AgentPod:
    def __init__(self, scene: PodScene) -> None:
        self._scene = scene

    async def decide(self) -> Decision:
        decision = await self._decide()
        machine = self._scene.machine
        machine.agent = decision.verdict.ready
        machine.network = machine.network or decision.verdict.ready
        return decision

    async def stop(self) -> None:
        self._scene.machine.agent = False

    async def _decide(self) -> Decision:
        scene = self._scene
        if scene.struck_by("cilium-agent-pending"):
            return scene.refuses("ImagePullBackOff", "fault cilium-agent-pending: the image cannot be pulled")
        if reason := await self._fails():
            return scene.crash(reason)
        if waiting := await self._waits():
            return scene.runs(ready=False, message=waiting, again=SOON)
        if reason := await self._announce():
            return scene.crash(reason)
        return scene.runs()

    async def _fails(self) -> str | None:
        scene = self._scene
        if scene.struck_by("cilium-agent-crashloop"):
            return 'fault cilium-agent-crashloop: level=fatal msg="failed to start"'
        if unreachable := await scene.unreachable(cilium_agent.agent_container(scene.pod) or {}):
            return unreachable
        subnets = scene.around.settings.pod_subnets
        return cilium_agent.refusal(scene.pod, self._config(), pod_cidrs=scene.pod_cidrs, pod_subnets=subnets)

    async def _waits(self) -> str | None:
        if cilium_agent.waits_for_pod_cidr(self._config(), self._scene.pod_cidrs):
            return "required IPv4 PodCIDR not available"
        registered = await self._scene.around.cilium_registered()
        return None if registered else "Waiting until all Cilium CRDs are available"

    async def _announce(self) -> str | None:
        """The agent's CiliumNode, made with the agent's own rights; the words of a refusal."""
        scene = self._scene
        account = scene.pod["spec"].get("serviceAccountName") or "default"
        body = cilium_agent.cilium_node(scene.machine.node, scene.node, scene.pod_cidrs)
        scene.machine.agent_identity = account_actor(scene.namespace, account)
        try:
            await scene.around.api.create("/apis/cilium.io/v2/ciliumnodes", body, actor=scene.machine.agent_identity)
        except ApiError as error:
            return None if error.status == 409 else f"unable to create CiliumNode: {error}"
        return None

    def _config(self) -> dict[str, str]:
        data = self._scene.inputs.data("ConfigMap", cilium_agent.CONFIG_MAP)
        return {key: text.decode() for key, text in data.items()}
