from pathlib import Path

import pytest
import yaml

from lab.stackfile import Place, StackFile, StackFileError, environment_name, for_lab, pool_addresses

PROJECT = Path(__file__).parent.parent


def written(directory: Path, document: object, name: str = "Pulumi.mine.yaml") -> Path:
    path = directory / name
    path.write_text(yaml.safe_dump(document))
    return path


def cluster(**changes: object) -> dict[str, object]:
    return {
        "name": "mine",
        "proxmox": {"endpoint": "https://10.0.0.2:8006", "hosts": {"a": {}}},
        "network": {"vip": "10.0.0.10"},
        "nodes": {"n1": {"address": "10.0.0.11"}, "n2": {"address": "10.0.0.12"}},
        "flux": {"url": "https://git.example/x/y.git", "branch": "main"},
        **changes,
    }


@pytest.mark.parametrize("stack", ["infra", "apps"])
def test_a_committed_stack_file_names_its_addresses_once(stack: str) -> None:
    file = StackFile.read(PROJECT / f"Pulumi.{stack}.yaml")
    addresses = file.addresses()
    assert file.stack == stack
    assert len(addresses) == len(set(addresses))
    assert set(addresses) >= {node["address"] for node in file.nodes.values()} | {file.cluster["network"]["vip"]}
    assert file.secrets == {"proxmoxToken": "PROXMOX_TOKEN", "csiToken": "PROXMOX_CSI_TOKEN", "gitToken": "GIT_TOKEN"}
    assert file.proxmox == Place(host="proxmox.home.arpa", port=8006)


def test_services_given_by_address_are_addresses_of_the_lab(tmp_path: Path) -> None:
    document = cluster(flux={"url": "https://10.0.0.3:8443/x.git", "branch": "main"})
    file = StackFile.read(written(tmp_path, {"config": {"p:cluster": document}}))
    assert file.addresses() == ["10.0.0.11", "10.0.0.12", "10.0.0.10", "10.0.0.2", "10.0.0.3"]


@pytest.mark.parametrize(
    ("pool", "expected"),
    [
        ({"range": "10.0.0.254-10.0.1.1"}, ["10.0.0.254", "10.0.0.255", "10.0.1.0", "10.0.1.1"]),
        ({"range": "10.0.0.5"}, ["10.0.0.5"]),
        ({"cidr": "10.0.0.8/30"}, ["10.0.0.8", "10.0.0.9", "10.0.0.10", "10.0.0.11"]),
    ],
)
def test_pools(pool: dict[str, str], expected: list[str]) -> None:
    assert pool_addresses(pool) == expected


def test_a_pool_too_large_for_one_device_is_refused() -> None:
    with pytest.raises(StackFileError, match="more than 1024"):
        pool_addresses({"cidr": "10.0.0.0/16"})


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "no `config`"),
        ({"config": {"x": 1}}, "no `<project>:cluster`"),
        ({"config": {"p:cluster": cluster(flux={"branch": "main"})}}, "no `flux.url`"),
        ({"config": {"p:cluster": cluster(proxmox={"endpoint": "nonsense"})}}, "no URL"),
    ],
)
def test_what_is_missing_is_named(tmp_path: Path, document: object, message: str) -> None:
    path = written(tmp_path, document)
    with pytest.raises(StackFileError, match=message):
        StackFile.read(path).addresses()


def test_secrets_encrypted_for_somebody_else_are_replaced_by_the_labs(tmp_path: Path) -> None:
    document = {
        "encryptionsalt": "v1:x",
        "config": {"p:cluster": cluster(), "p:proxmoxToken": {"secure": "v1:abc"}, "p:gitToken": "env:MY_TOKEN"},
    }
    file = StackFile.read(written(tmp_path, document))
    assert (file.sealed, file.secrets) == (("proxmoxToken",), {"gitToken": "MY_TOKEN"})
    staged = yaml.safe_load(for_lab(file.path.read_text(), file, "lab"))
    assert staged["config"]["p:proxmoxToken"] == f"env:{environment_name('proxmoxToken')}" == "env:LAB_PROXMOX_TOKEN"
    assert "encryptionsalt" not in staged
    assert staged["config"]["p:cluster"] == document["config"]["p:cluster"]  # type: ignore[index]


def test_a_file_initialised_with_a_passphrase_is_staged_without_it(tmp_path: Path) -> None:
    file = StackFile.read(written(tmp_path, {"encryptionsalt": "v1:x", "config": {"p:cluster": cluster()}}))
    assert yaml.safe_load(for_lab(file.path.read_text(), file, "lab")) == {"config": {"p:cluster": cluster()}}


def test_an_authority_pinned_for_the_real_site_is_replaced_by_the_labs(tmp_path: Path) -> None:
    proxmox = {"endpoint": "https://10.0.0.2:8006", "hosts": {"a": {}}, "ca": "real"}
    file = StackFile.read(written(tmp_path, {"config": {"p:cluster": cluster(proxmox=proxmox)}}))
    staged = yaml.safe_load(for_lab(file.path.read_text(), file, "lab"))
    assert staged["config"]["p:cluster"]["proxmox"]["ca"] == "lab"


def test_the_committed_file_is_staged_as_it_is() -> None:
    file = StackFile.read(PROJECT / "Pulumi.infra.yaml")
    assert for_lab(file.path.read_text(), file, "lab") == file.path.read_text()


def test_a_file_of_another_name_is_the_stack_of_its_cluster(tmp_path: Path) -> None:
    assert StackFile.read(written(tmp_path, {"config": {"p:cluster": cluster()}}, "own.yaml")).stack == "mine"
