"""The lab's internet with the real modules behind it."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from lab.authority import Authority
from lab.faults import Faults
from lab.internet import Internet
from lab.request_log import RequestLog
from lab.toolchain.programs import Programs

pytestmark = pytest.mark.lab

ROOT = Path(__file__).parents[2]
CLUSTER = yaml.safe_load((ROOT / "Pulumi.infra.yaml").read_text(encoding="utf-8"))["config"]["groundwork:cluster"]


@pytest.fixture
def internet(tmp_path: Path) -> Internet:
    return Internet(
        cluster=CLUSTER,
        git_root=tmp_path / "git",
        git_token="token",
        state=tmp_path / "state",
        modules=Programs().module_directory,
        log=RequestLog(tmp_path / "requests.jsonl"),
        authority=Authority(tmp_path / "ca"),
        faults=Faults(),
    )


async def get(internet: Internet, url: str) -> httpx.Response:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=internet.application), timeout=300) as client:
        answer = await client.get(url)
    assert answer.status_code == 200, answer.text
    return answer


def unpack(archive: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
        return {member.name: file.read() for member in tar if (file := tar.extractfile(member))}


async def objects(internet: Internet, url: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((await get(internet, url)).text))


@pytest.mark.parametrize(
    ("repository", "chart", "version"),
    [
        ("helm.cilium.io", "cilium", CLUSTER["versions"]["cilium"]),
        ("bitnami-labs.github.io/sealed-secrets", "sealed-secrets", CLUSTER["versions"]["sealed_secrets"]),
        ("kubernetes-sigs.github.io/metrics-server", "metrics-server", "3.13.1"),
    ],
)
async def test_the_charts_carry_the_versions_the_stack_names(
    internet: Internet, repository: str, chart: str, version: str
) -> None:
    index = yaml.safe_load((await get(internet, f"https://{repository}/index.yaml")).text)
    assert [entry["version"] for entry in index["entries"][chart]] == [version]
    files = unpack((await get(internet, index["entries"][chart][0]["urls"][0])).content)
    assert yaml.safe_load(files[f"{chart}/Chart.yaml"])["version"] == version
    values = yaml.safe_load(files[f"{chart}/values.yaml"])
    assert bool(internet.skews()) == (values["image"].get("useDigest") is False)


async def test_the_flux_distribution_has_the_pinned_flux(internet: Internet) -> None:
    repository = "https://ghcr.io/v2/controlplaneio-fluxcd/flux-operator-manifests"
    manifest = (await get(internet, f"{repository}/manifests/v{CLUSTER['versions']['flux_operator']}")).json()
    files = unpack((await get(internet, f"{repository}/blobs/{manifest['layers'][0]['digest']}")).content)
    version = f"v{CLUSTER['versions']['flux']}"
    images = yaml.safe_load(files[f"flux-images/{version}/upstream-alpine.yaml"])["images"]
    assert {image["name"] for image in images} >= {
        f"ghcr.io/fluxcd/{name}-controller" for name in ("source", "kustomize", "helm", "notification")
    }
    assert f"flux/{version}/source-controller.yaml" in files


async def test_the_csi_chart_is_in_the_registry(internet: Internet) -> None:
    repository = "https://ghcr.io/v2/sergelogvinov/charts/proxmox-csi-plugin"
    version = CLUSTER["versions"]["proxmox_csi"]
    manifest = (await get(internet, f"{repository}/manifests/{version}")).json()
    config = (await get(internet, f"{repository}/blobs/{manifest['config']['digest']}")).json()
    assert config["version"] == version
    assert internet.skews() == []


async def test_the_operator_manifest_is_what_the_release_installs(internet: Internet) -> None:
    version = CLUSTER["versions"]["flux_operator"]
    release = f"https://github.com/controlplaneio-fluxcd/flux-operator/releases/download/v{version}"
    items = await objects(internet, f"{release}/install.yaml")
    assert items[0]["kind"] == "Namespace"
    by_kind = {(item["kind"], item["metadata"]["name"]): item for item in items}
    deployment = by_kind["Deployment", "flux-operator"]
    assert deployment["metadata"]["namespace"] == "flux-system"
    image = deployment["spec"]["template"]["spec"]["containers"][0]["image"]
    assert image == f"ghcr.io/controlplaneio-fluxcd/flux-operator:v{version}"
    assert ("CustomResourceDefinition", "fluxinstances.fluxcd.controlplane.io") in by_kind
    assert by_kind["Service", "flux-operator"]["metadata"]["namespace"] == "flux-system"


async def test_the_gateway_api_crds(internet: Internet) -> None:
    version = CLUSTER["versions"]["gateway_api"]
    release = f"https://github.com/kubernetes-sigs/gateway-api/releases/download/v{version}/standard-install.yaml"
    crds = [item for item in await objects(internet, release) if item["kind"] == "CustomResourceDefinition"]
    assert "gateways.gateway.networking.k8s.io" in {crd["metadata"]["name"] for crd in crds}
    assert {crd["metadata"]["annotations"]["gateway.networking.k8s.io/bundle-version"] for crd in crds} == {
        f"v{version}"
    }
