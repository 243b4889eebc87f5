"""Every bad config is refused for its own reason, with its path, a fix and no traceback."""

from __future__ import annotations

import re
from pathlib import Path

import pulumi
import pytest

import config
from config import rules, structure
from tests import config_stacks as stacks
from tests.bad_configs import BAD_CONFIGS, KEY, TOKEN, Bad

CILIUM_CA = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n" + KEY


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (stacks.ENVIRONMENT | {"CILIUM_CA": CILIUM_CA, "SEALING_CERTIFICATE": CILIUM_CA}).items():
        monkeypatch.setenv(name, value)


def refusal(directory: Path, stack: str, patches: dict[str, stacks.Patch]) -> str:
    with pytest.raises(pulumi.RunError) as caught:
        stacks.load(directory, stack, patches)
    return str(caught.value)


@pytest.mark.parametrize("case", BAD_CONFIGS, ids=lambda case: case.name)
def test_refused(case: Bad, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if case.unset:
        monkeypatch.delenv(case.unset)
    other = next(name for name in stacks.STACKS if name != case.stack)
    message = refusal(tmp_path, case.stack, {case.stack: case.patch, other: case.other})
    for words in case.words:
        assert words in message
    assert message.startswith(f"Pulumi.{case.stack}.yaml has ")
    assert message.count("\n      fix: ") == int(re.findall(r"has (\d+) problem", message)[0])


def test_names_are_unique() -> None:
    names = [case.name for case in BAD_CONFIGS]
    assert len(names) == len(set(names))
    assert len(names) >= 60


def test_no_refusal_repeats_a_secret(tmp_path: Path) -> None:
    patch = {
        "cluster.proxmox.pool": TOKEN,
        "cluster.proxmox.ca": KEY,
        "cluster.nodes.infra-w-1.address": TOKEN,
        "cluster.talos.bootstrap_node": TOKEN,
        "cluster.rollout": {"nodes": [TOKEN]},
        "cluster.proxmox.hosts": [TOKEN],
        "cluster.crds": [{"url": "https://me:hunter4@h.example/main/crds.yaml"}],
        "cluster.proxmox.pasword": "hunter2-hunter2",
        "cluster.flux.url": "https://me:hunter3@git.home.arpa/a.git",
        "proxmoxToken": TOKEN,
        "gitToken": "ghp_0123456789012345678901234567890",
    }
    message = refusal(tmp_path, "infra", {"infra": patch})
    for secret in ("33333333", "MIIB", "hunter2", "hunter3", "hunter4", "ghp_", *stacks.ENVIRONMENT.values()):
        assert secret not in message


def test_all_errors_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PROXMOX_TOKEN")
    patch = {
        "cluster.netwrok": {},
        "cluster.versions.talos": "1.13.7",
        "cluster.nodes.infra-w-2.vmid": 1121,
        "cluster.nodes.infra-w-3.address": "nowhere",
        "cluster.network.vip": "10.25.11.100",
        "cluster.lb_addresses.gateway": "10.25.11.140",
        "cluster.cilium.id": 2,
        "cluster.proxmox.mtu": 1,
        "cluster.mesh.enabled": "perhaps",
    }
    message = refusal(tmp_path, "infra", {"infra": patch})
    paths = [line.split(": ")[0].strip() for line in message.splitlines()[1:] if "fix:" not in line]
    assert sorted(paths) == sorted(
        [
            "cluster.netwrok",
            "cluster.proxmox.mtu",
            "cluster.mesh.enabled",
            "cluster.nodes.infra-w-3.address",
            "cluster.versions.talos",
            "cluster.lb_pools.mesh",
            "cluster.lb_addresses.gateway",
            "cluster.nodes.infra-w-2.vmid",
            "cluster.cilium.id",
            "proxmoxToken",
        ]
    )


def test_an_unreadable_node_brings_no_false_alarm(tmp_path: Path) -> None:
    """Leaving it out must not make the control planes even, nor the bootstrap node unknown."""
    message = refusal(tmp_path, "infra", {"infra": {"cluster.nodes.infra-cp-1.cores": "many"}})
    assert "has 1 problem;" in message


def test_an_unknown_key_in_a_node_hides_nothing(tmp_path: Path) -> None:
    patch = {"cluster.nodes.infra-cp-1.core": 4, "cluster.nodes.infra-cp-3": stacks.DELETE}
    message = refusal(tmp_path, "infra", {"infra": patch})
    assert "did you mean cores?" in message
    assert "2 control planes" in message


def test_an_encrypted_value_is_found_after_pulumi_has_decrypted_it(tmp_path: Path) -> None:
    with pytest.raises(pulumi.RunError, match="cluster: something in it is encrypted"):
        stacks.load(tmp_path, "infra", secret_keys=["cluster"])


def test_an_encrypted_value_is_named_by_its_path(tmp_path: Path) -> None:
    """The file holds the cipher text, the program is given the clear text."""
    encrypted = stacks.patched(stacks.committed("infra"), {"cluster.flux.branch": {"secure": "v1:abc"}})
    stacks.write(tmp_path, "infra", encrypted)
    stacks.hand_over("infra", stacks.committed("infra"), secret_keys=["cluster"])
    with pytest.raises(pulumi.RunError, match=r"cluster\.flux\.branch: an encrypted value inside cluster"):
        config.load(tmp_path)


def test_an_old_engine_is_refused_together_with_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_old(wanted: str) -> None:
        raise RuntimeError(f"Pulumi CLI version 3.100.0 does not satisfy {wanted}")

    monkeypatch.setattr(pulumi, "require_pulumi_version", too_old)
    message = refusal(tmp_path, "infra", {"infra": {"cluster.cilium.id": 0}})
    assert "pulumi: this engine is not supported: Pulumi CLI version 3.100.0" in message
    assert "cluster.cilium.id" in message


def test_git_has_to_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "git: is not on the PATH" in refusal(tmp_path, "infra", {})


def test_a_third_stack_is_found(tmp_path: Path) -> None:
    third = stacks.committed("apps")
    third["cluster"] |= {"name": "edge"}
    stacks.write(tmp_path, "edge", third)
    message = refusal(tmp_path, "apps", {})
    assert "2 is used by apps and by edge (Pulumi.edge.yaml)" in message


@pytest.mark.parametrize("text", ["config: [", "- config"])
def test_a_stack_file_that_is_not_yaml_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / "Pulumi.edge.yaml").write_text(text)
    assert "Pulumi.edge.yaml: cannot be compared with this stack (it is not a YAML mapping)" in refusal(
        tmp_path, "infra", {}
    )


def test_a_defect_in_a_rule_is_not_swallowed() -> None:
    cluster = structure.parse({}).cluster
    for wrong in (lambda: cluster.nodse, lambda: object().nodes):  # type: ignore[attr-defined]
        with pytest.raises(AttributeError):
            list(rules.readable((wrong() for _ in range(1)), cluster))
