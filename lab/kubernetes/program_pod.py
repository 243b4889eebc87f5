"""A pod whose image stands for a real program: it is ready when, and only when, that program says so."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from lab.kubernetes.api import Object
from lab.kubernetes.pod_program import PodProgram
from lab.kubernetes.pod_scene import CALM, SOON, Decision, PodScene
from lab.kubernetes.pod_status import PULL_FAILED
from lab.kubernetes.settings import image_version
from lab.kubernetes.workloads import FLUX_OPERATOR_MODULE, Workload
from lab.toolchain.errors import ToolchainError


class ProgramPod:
    def __init__(self, scene: PodScene, workload: Workload, container: Object) -> None:
        self._scene = scene
        self._workload = workload
        self._container = container
        self._program: PodProgram | None = None

    async def decide(self) -> Decision:
        if reason := await self._stopped_by():
            await self.stop()
            return self._scene.crash(reason)
        if resting := self._scene.crashes.resting(time.monotonic()):
            return self._scene.crashed(again=resting)
        try:
            program = self._program or await self._start()
        except (ToolchainError, LookupError, OSError) as error:
            message = f"the lab's toolchain has no {self._workload.program} to run for this image: {error}"
            return self._scene.refuses(PULL_FAILED, message)
        return await self._watch(program)

    async def stop(self) -> None:
        if self._program:
            await self._program.stop()
            self._program = None

    async def _stopped_by(self) -> str | None:
        if self._workload.program == "cilium-operator" and self._scene.struck_by("operator-down"):
            return "fault operator-down: the operator was stopped"
        return await self._scene.unreachable(self._container)

    async def _start(self) -> PodProgram:
        scene, around = self._scene, self._scene.around
        path = around.programs.path(self._workload.program)
        program = PodProgram(
            api=around.api,
            url=around.url,
            ca=around.settings.ca.certificate,
            directory=around.directory / "pods" / f"{scene.namespace}_{scene.name}",
            data=await asyncio.to_thread(self._image_data),
            trust=around.trust,
            shared=around.ports,
        )
        await program.start(scene.pod, self._container, self._workload, path, scene.inputs)
        self._program = program
        return program

    def _image_data(self) -> Path | None:
        """What the image holds beside its program: the Flux manifests, in flux-operator's case."""
        if not self._workload.paths:
            return None
        version = image_version(self._container["image"])
        return self._scene.around.programs.module_directory(FLUX_OPERATOR_MODULE, version) / "config" / "data"

    async def _watch(self, program: PodProgram) -> Decision:
        code = program.process.exit_code if program.process else None
        if program.process and code is not None:
            moment = time.monotonic()
            self._scene.crashes.failed(program.process.tail(), moment, exit_code=code)
            self._program = None
            return self._scene.crashed(again=self._scene.crashes.resting(moment))
        if await program.ready():
            return self._scene.runs(again=CALM)
        return self._scene.runs(ready=False, message="its readiness probe fails", again=SOON)
