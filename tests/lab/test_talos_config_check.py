"""The Talos emulator refuses what Talos's own validation refuses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml
from grpclib.const import Status

from lab.toolchain.programs import Programs
from tests.talos_lab import TalosLab, refusal, talos_lab

pytestmark = pytest.mark.lab


class CheckedLab(TalosLab):
    program: Path

    async def _check(self, data: bytes) -> str | None:
        checker = await asyncio.create_subprocess_exec(self.program, stdin=-1, stdout=-1, stderr=-1)
        _, said = await checker.communicate(data)
        return said.decode().strip() if checker.returncode else None


@pytest.fixture
async def lab(tmp_path: Path) -> AsyncIterator[TalosLab]:
    programs = Programs()
    await programs.resolve("talos-config-check")
    CheckedLab.program = programs.path("talos-config-check")
    async with talos_lab(tmp_path, CheckedLab) as made:
        yield made


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"machine": {"type": "chief"}}, "chief"),
        ({"cluster": {"controlPlane": {"endpoint": "no address"}}}, "endpoint"),
        ({"machine": {"wonder": True}}, "wonder"),
    ],
    ids=["machine type", "endpoint", "unknown key"],
)
async def test_invalid_config(lab: TalosLab, change: dict[str, dict[str, object]], complaint: str) -> None:
    await lab.power_on(1, "cp-1")
    client = await lab.maintenance(1)
    documents = list(yaml.safe_load_all(lab.config(1, "cp-1")))
    for section, values in change.items():
        documents[0][section].update(values)
    error = await refusal(lambda: client.apply(yaml.safe_dump_all(documents).encode()))
    assert error.status is Status.INVALID_ARGUMENT
    assert complaint in error.message
