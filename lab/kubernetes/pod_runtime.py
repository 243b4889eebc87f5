"""What becomes of one pod on its node: the kubelet's decisions, made anew whenever something has changed."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path

from lab.kubernetes import cilium_agent, reach
from lab.kubernetes import machine as machines
from lab.kubernetes.api import ApiError, Object, account_actor
from lab.kubernetes.crash_loop import CrashLoop
from lab.kubernetes.machine import Machine
from lab.kubernetes.pod_inputs import PodInputs
from lab.kubernetes.pod_program import PodProgram
from lab.kubernetes.pod_status import CONFIG_ERROR, PULL_FAILED, Verdict, crashing, creating, refused, running
from lab.kubernetes.settings import image_version
from lab.kubernetes.surroundings import Surroundings
from lab.kubernetes.workloads import FLUX_OPERATOR_MODULE, Workload, workload_of
from lab.toolchain.errors import ToolchainError

SOON, LATER, CALM = 0.3, 1.0, 2.0
PULL_BACKOFF = "ImagePullBackOff"


@dataclass(frozen=True, kw_only=True)
class Decision:
    verdict: Verdict
    again: float | None = None
    """Seconds after which to look again; None waits for something to change."""


class PodRuntime:
    def __init__(self, pod: Object, machine: Machine, around: Surroundings) -> None:
        self.pod = pod
        self.machine = machine
        self.node: Object = {}
        """The Node object, as last seen."""
        self.address: str | None = None
        self._around = around
        self._inputs = PodInputs(around.api, pod)
        self._mounted = False
        self._pulled_at: float | None = None
        self._program: PodProgram | None = None
        self._crashes = CrashLoop(around.pace.scale)

    @property
    def name(self) -> str:
        return str(self.pod["metadata"]["name"])

    async def decide(self) -> Decision:
        """The first thing that holds it up, or how it runs."""
        return await self._held_up() or await self._run()

    async def stop(self) -> None:
        if self._program:
            await self._program.stop()
            self._program = None
        self._leave()
        self.machine.release(self.pod["metadata"]["uid"])

    async def _held_up(self) -> Decision | None:
        if machines.is_mirror(self.pod):
            self.address = self.machine.node.address
            return None
        if not self._mounted and (missing := await self._inputs.missing(mounted=True)):
            await self._around.event(self.pod, "FailedMount", f"MountVolume.SetUp failed: {missing}")
            return Decision(verdict=creating(), again=LATER)
        self._mounted = True
        if not self._has_network():
            return Decision(verdict=creating())
        if (remaining := self._pulling()) > 0:
            return Decision(verdict=creating(), again=remaining)
        if missing := await self._inputs.missing(mounted=False):
            return Decision(verdict=refused(CONFIG_ERROR, missing), again=LATER)
        return None

    def _has_network(self) -> bool:
        """A pod that has its address keeps it, whatever becomes of the agent."""
        if self.pod["spec"].get("hostNetwork"):
            self.address = self.machine.node.address
        elif self.address is None and self.machine.agent:
            before = (self.pod.get("status") or {}).get("podIP")
            self.address = self.machine.address_for(self.pod["metadata"]["uid"], self.pod_cidrs, before)
        return self.address is not None

    @property
    def pod_cidrs(self) -> list[str]:
        return list((self.node.get("spec") or {}).get("podCIDRs") or [])

    def _pulling(self) -> float:
        """Seconds that the images of this pod still take; they stay on the node for the next one."""
        wanted = {container.get("image", "") for container in self.pod["spec"]["containers"]}
        if wanted <= self.machine.images:
            return 0.0
        if self._pulled_at is None:
            self._pulled_at = time.monotonic() + self._around.pace.seconds("image pull")
        remaining = self._pulled_at - time.monotonic()
        if remaining <= 0:
            self.machine.images |= wanted
        return remaining

    async def _run(self) -> Decision:
        if cilium_agent.is_agent(self.pod):
            decision = await self._agent()
            self.machine.agent = decision.verdict.ready
            self.machine.network = self.machine.network or decision.verdict.ready
            return decision
        if found := workload_of(self.pod):
            return await self._workload(*found)
        return self._emulated()

    async def _agent(self) -> Decision:
        if self._around.faults.active("cilium-agent-pending", self.machine.node.name):
            return Decision(verdict=refused(PULL_BACKOFF, "fault cilium-agent-pending: the image cannot be pulled"))
        if reason := await self._agent_fails():
            return self._crash(reason)
        if waiting := await self._agent_waits():
            return Decision(verdict=running(ready=False, message=waiting, restarts=self._crashes.restarts), again=SOON)
        if reason := await self._announce():
            return self._crash(reason)
        return Decision(verdict=running(ready=True, restarts=self._crashes.restarts))

    async def _agent_fails(self) -> str | None:
        if self._around.faults.active("cilium-agent-crashloop", self.machine.node.name):
            return 'fault cilium-agent-crashloop: level=fatal msg="failed to start"'
        if unreachable := await self._unreachable(cilium_agent.agent_container(self.pod) or {}):
            return unreachable
        return cilium_agent.refusal(self.pod, self.machine.node, self._config(), self.pod_cidrs)

    async def _agent_waits(self) -> str | None:
        if cilium_agent.waits_for_pod_cidr(self._config(), self.pod_cidrs):
            return "required IPv4 PodCIDR not available"
        registered = await self._around.cilium_registered()
        return None if registered else "Waiting until all Cilium CRDs are available"

    def _config(self) -> dict[str, str]:
        return {key: text.decode() for key, text in self._inputs.data("ConfigMap", cilium_agent.CONFIG_MAP).items()}

    async def _announce(self) -> str | None:
        """The agent's CiliumNode, made with the agent's own rights; the words of a refusal."""
        account = self.pod["spec"].get("serviceAccountName") or "default"
        actor = account_actor(self.pod["metadata"]["namespace"], account)
        body = cilium_agent.cilium_node(self.machine.node, self.node, self.pod_cidrs)
        try:
            await self._around.api.create("/apis/cilium.io/v2/ciliumnodes", body, actor=actor)
        except ApiError as error:
            return None if error.status == 409 else f"unable to create CiliumNode: {error}"
        return None

    async def _unreachable(self, container: Object) -> str | None:
        address = reach.api_address(self._inputs.environment(container))
        if address is None and not self.pod["spec"].get("hostNetwork"):
            return None
        if await reach.answers(address, self.machine, self._around.endpoints):
            return None
        return reach.refusal(address, self._around.settings.service_address(1))

    async def _workload(self, workload: Workload, container: Object) -> Decision:
        if workload.program == "cilium-operator" and self._around.faults.active(
            "operator-down", self.machine.node.name
        ):
            await self._end_program()
            return self._crash("fault operator-down: the operator was stopped")
        try:
            program = self._around.programs.path(workload.program)
            data = await asyncio.to_thread(self._image_data, workload, container)
        except (ToolchainError, LookupError, OSError) as error:
            message = f"the lab's toolchain has no {workload.program} to run for this image: {error}"
            return Decision(verdict=refused(PULL_FAILED, message), again=LATER)
        if unreachable := await self._unreachable(container):
            await self._end_program()
            return self._crash(unreachable)
        if resting := self._crashes.resting(time.monotonic()):
            return Decision(verdict=self._crashed(), again=resting)
        if self._program is None:
            self._program = self._new_program(data)
            await self._program.start(self.pod, container, workload, program, self._inputs)
        return await self._watch_program(self._program)

    async def _watch_program(self, program: PodProgram) -> Decision:
        code = program.process.exit_code if program.process else None
        if program.process and code is not None:
            self._crashes.failed(program.process.tail(), time.monotonic(), exit_code=code)
            self._program = None
            return Decision(verdict=self._crashed(), again=self._crashes.resting(time.monotonic()))
        ready = await program.ready()
        message = "" if ready else "its readiness probe fails"
        verdict = running(ready=ready, message=message, restarts=self._crashes.restarts)
        return Decision(verdict=verdict, again=CALM if ready else SOON)

    def _image_data(self, workload: Workload, container: Object) -> Path | None:
        """What the image holds beside its program: the Flux manifests, in flux-operator's case."""
        if not workload.paths:
            return None
        version = image_version(container["image"])
        return self._around.programs.module_directory(FLUX_OPERATOR_MODULE, version) / "config" / "data"

    def _new_program(self, data: Path | None) -> PodProgram:
        around = self._around
        return PodProgram(
            api=around.api,
            url=around.url,
            ca=around.settings.ca.certificate,
            directory=around.directory / "pods" / f"{self.pod['metadata']['namespace']}_{self.name}",
            data=data,
            shared=around.ports,
        )

    async def _end_program(self) -> None:
        if self._program:
            await self._program.stop()
            self._program = None

    def _emulated(self) -> Decision:
        """Nothing runs: what its containers would do is taken for granted, and said so in the report."""
        if struck := self._struck():
            return struck
        if machines.is_mirror(self.pod):
            return Decision(verdict=running(ready=True))
        where = f"{self.pod['metadata']['namespace']}/{self.name}"
        if self.pod["spec"].get("restartPolicy", "Always") != "Always":
            self._around.not_shown.add(f"{where}: would run to completion; nothing in the lab runs it")
        else:
            self._around.not_shown.add(f"{where}: emulated, ready without having been asked")
        if driver := machines.csi_driver(self.pod):
            return self._csi(driver)
        if (self.pod["metadata"].get("labels") or {}).get("k8s-app") == "flannel":
            self.machine.agent = self.machine.network = True
        return Decision(verdict=running(ready=True, restarts=self._crashes.restarts))

    def _struck(self) -> Decision | None:
        faults, node = self._around.faults, self.machine.node.name
        if machines.is_resolver(self.pod) and faults.active("dns-broken", node):
            failed = "Readiness probe failed: HTTP probe failed with statuscode: 503"
            return Decision(verdict=running(ready=False, message=failed))
        if machines.is_csi_controller(self.pod) and faults.active("csi-controller-crash", node):
            return self._crash("fault csi-controller-crash: rpc error: 401 authentication failure")
        return None

    def _csi(self, driver: str) -> Decision:
        node = self.machine.node.name
        if self._around.faults.active("csi-node-plugin-missing", node):
            self.machine.drivers.pop(driver, None)
            message = "fault csi-node-plugin-missing: the image cannot be pulled"
            return Decision(verdict=refused(PULL_BACKOFF, message))
        try:
            labels = self.node.get("metadata", {}).get("labels") or {}
            self.machine.drivers[driver] = machines.topology(driver, labels)
        except LookupError as error:
            return self._crash(str(error.args[0]))
        return Decision(verdict=running(ready=True, restarts=self._crashes.restarts))

    def _crash(self, message: str) -> Decision:
        """A container that starts and ends; the kubelet tries again after a while, longer each time."""
        moment = time.monotonic()
        if not self._crashes.resting(moment) or message != self._crashes.message:
            self._crashes.failed(message, moment)
        return Decision(verdict=self._crashed(), again=LATER)

    def _crashed(self) -> Verdict:
        crashes = self._crashes
        return crashing(crashes.message, restarts=crashes.restarts, exit_code=crashes.exit_code)

    def _leave(self) -> None:
        """What the node loses with this pod."""
        if cilium_agent.is_agent(self.pod):
            self.machine.agent = False
        if driver := machines.csi_driver(self.pod):
            self.machine.drivers.pop(driver, None)
