"""Secrets reach the program as secret outputs, whichever way the stack file names them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pulumi
import pytest

from tests import config_stacks as stacks
from tests.bad_configs import KEY

CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in stacks.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


async def _value(output: pulumi.Output[Any]) -> tuple[Any, bool]:
    return await output.future(), await output.is_secret()


async def test_environment_references_become_secrets(tmp_path: Path) -> None:
    secrets = stacks.load(tmp_path, "infra").secrets
    assert await _value(secrets.proxmox_token) == (stacks.ENVIRONMENT["PROXMOX_TOKEN"], True)
    assert secrets.csi_token is not None
    assert await _value(secrets.csi_token) == (stacks.ENVIRONMENT["PROXMOX_CSI_TOKEN"], True)


async def test_encrypted_values_stay_secret(tmp_path: Path) -> None:
    patch = {"proxmoxToken": "a@pve!b=1", "sealingCertificate": CERTIFICATE, "sealingKey": KEY}
    secrets = stacks.load(tmp_path, "infra", {"infra": patch}, secret_keys=list(patch)).secrets
    assert await _value(secrets.proxmox_token) == ("a@pve!b=1", True)
    assert secrets.sealing_key is not None
    assert await _value(secrets.sealing_key) == (KEY, True)


async def test_no_secret_is_part_of_the_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = stacks.load(tmp_path, "infra").digest
    monkeypatch.setenv("GIT_TOKEN", "another")
    assert stacks.load(tmp_path, "infra").digest == digest
