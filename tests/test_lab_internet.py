"""The lab's internet, made from small module directories."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import tarfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from lab.authority import Authority
from lab.faults import Fault, Faults
from lab.internet import Internet, RemoteFile
from lab.internet.modules import Workshop
from lab.request_log import RequestLog

CLUSTER: dict[str, Any] = {
    "versions": {"talos": "1.13.9", "cilium": "1.20.1", "flux_operator": "0.58.1", "gateway_api": "1.6.1"},
    "flux": {"url": "https://git.home.arpa/platform/groundwork.git", "branch": "main"},
}
TOKEN = "a-token"
QEMU_AGENT = "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515"
EMPTY_SCHEMATIC = "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba"


def write(path: Path, *documents: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump_all(documents, sort_keys=False), encoding="utf-8")


def write_chart(directory: Path, name: str, version: str) -> None:
    write(directory / "Chart.yaml", {"apiVersion": "v2", "name": name, "version": version, "displayName": "!"})
    write(directory / "values.yaml", {"replicas": 1})
    write(directory / "templates/object.yaml", {"kind": "ConfigMap"})


def write_flux_operator(directory: Path) -> None:
    kustomization = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    config = directory / "config"
    write(
        config / "default/kustomization.yaml",
        {**kustomization, "namespace": "flux-system", "resources": ["namespace.yaml", "../crd", "../manager"]},
    )
    write(config / "default/namespace.yaml", {"kind": "Namespace", "metadata": {"name": "flux-system"}})
    write(config / "crd/kustomization.yaml", {**kustomization, "resources": ["crd.yaml"]})
    write(config / "crd/crd.yaml", {"kind": "CustomResourceDefinition", "metadata": {"name": "fluxinstances"}})
    images = [{"name": "flux-operator", "newName": "ghcr.io/x/flux-operator", "newTag": "v0.58.1"}]
    write(
        config / "manager/kustomization.yaml",
        {**kustomization, "resources": ["deployment.yaml", "account.yaml"], "images": images},
    )
    containers = [{"name": "manager", "image": "flux-operator:latest"}]
    deployment = {
        "kind": "Deployment",
        "metadata": {"name": "flux-operator"},
        "spec": {"template": {"spec": {"containers": containers}}},
    }
    write(config / "manager/deployment.yaml", deployment)
    write(config / "manager/account.yaml", {"kind": "ServiceAccount", "metadata": {"name": "flux-operator"}})
    write(config / "data/flux/v2.9.4/source-controller.yaml", {"kind": "Deployment"})
    write(config / "data/flux-images/v2.9.4/upstream-alpine.yaml", {"images": []})
    write(config / "data/flux-vex/v2.9.json", {})


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    root = tmp_path / "modules"
    write_chart(root / "github.com/cilium/cilium@v1.20.1/install/kubernetes/cilium", "cilium", "1.20.1")
    write_chart(root / "github.com/bitnami-labs/sealed-secrets@v0.36.6/helm/sealed-secrets", "sealed-secrets", "2.18.3")
    write_chart(
        root / "github.com/sergelogvinov/proxmox-csi-plugin@v0.18.1/charts/proxmox-csi-plugin",
        "proxmox-csi-plugin",
        "0.5.6",
    )
    crds = root / "sigs.k8s.io/gateway-api@v1.6.1/config/crd/standard"
    write(crds / "gateway.networking.k8s.io_gateways.yaml", {"kind": "CustomResourceDefinition", "metadata": {}})
    write(crds / "kustomization.yaml", {"resources": []})
    write_flux_operator(root / "github.com/controlplaneio-fluxcd/flux-operator@v0.58.1")
    return root


@pytest.fixture
def faults() -> Faults:
    return Faults()


@pytest.fixture
def log(tmp_path: Path) -> RequestLog:
    return RequestLog(tmp_path / "requests.jsonl")


@pytest.fixture
def internet(tmp_path: Path, modules: Path, faults: Faults, log: RequestLog) -> Internet:
    def directory(module: str, version: str) -> Path:
        path = modules / f"{module}@{version}"
        if not path.is_dir():
            raise LookupError(f"no module {module} {version}")
        return path

    return Internet(
        cluster=CLUSTER,
        git_root=tmp_path / "git",
        git_token=TOKEN,
        state=tmp_path / "state",
        modules=directory,
        log=log,
        authority=Authority(tmp_path / "ca"),
        faults=faults,
    )


@pytest.fixture
async def client(internet: Internet) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=internet.application)) as client:
        yield client


def unpack(archive: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
        return {member.name: file.read() for member in tar if (file := tar.extractfile(member))}


@contextmanager
def struck(faults: Faults, name: str, node: str | None = None) -> Iterator[None]:
    faults.add(Fault(name=name, node=node))
    yield
    faults.remove(name)


async def test_a_chart_repository_serves_what_its_index_names(client: httpx.AsyncClient) -> None:
    index = yaml.safe_load((await client.get("https://helm.cilium.io/index.yaml")).text)
    (entry,) = index["entries"]["cilium"]
    archive = (await client.get(entry["urls"][0])).content
    assert entry["version"] == "1.20.1"
    assert "displayName" not in entry, "Helm refuses an index with fields it does not know"
    assert entry["digest"] == hashlib.sha256(archive).hexdigest()
    assert {"cilium/Chart.yaml", "cilium/values.yaml", "cilium/templates/object.yaml"} == set(unpack(archive))


async def test_a_repository_below_a_path(client: httpx.AsyncClient) -> None:
    base = "https://bitnami-labs.github.io"
    assert (await client.get(f"{base}/sealed-secrets/index.yaml")).status_code == 200
    assert (await client.get(f"{base}/index.yaml")).status_code == 404
    assert (await client.get(f"{base}/sealed-secrets/sealed-secrets-9.9.9.tgz")).status_code == 404


async def test_sources_of_another_version_are_packed_under_the_asked_one_and_reported(
    client: httpx.AsyncClient, internet: Internet
) -> None:
    archive = await client.get("https://bitnami-labs.github.io/sealed-secrets/sealed-secrets-2.18.4.tgz")
    chart = yaml.safe_load(unpack(archive.content)["sealed-secrets/Chart.yaml"])
    assert chart["version"] == "2.18.4"
    (skew,) = internet.skews()
    assert "2.18.4" in skew
    assert "2.18.3" in skew


async def test_a_chart_whose_module_cannot_be_had_is_not_in_the_index(client: httpx.AsyncClient) -> None:
    index = await client.get("https://kubernetes-sigs.github.io/metrics-server/index.yaml")
    assert yaml.safe_load(index.text)["entries"] == {}


async def test_the_fault_chart_missing(client: httpx.AsyncClient, faults: Faults) -> None:
    url = "https://helm.cilium.io/cilium-1.20.1.tgz"
    with struck(faults, "chart-missing", "cilium"):
        assert (await client.get(url)).status_code == 404
    assert (await client.get(url)).status_code == 200


async def test_a_chart_pulled_from_the_registry(client: httpx.AsyncClient) -> None:
    repository = "https://ghcr.io/v2/sergelogvinov/charts/proxmox-csi-plugin"
    assert (await client.get("https://ghcr.io/v2/")).status_code == 200
    assert (await client.get(f"{repository}/tags/list")).json()["tags"] == ["0.5.6"]
    answer = await client.get(f"{repository}/manifests/0.5.6")
    manifest = answer.json()
    assert answer.headers["content-type"] == manifest["mediaType"] == "application/vnd.oci.image.manifest.v1+json"
    assert answer.headers["docker-content-digest"] == f"sha256:{hashlib.sha256(answer.content).hexdigest()}"
    (layer,) = manifest["layers"]
    assert layer["mediaType"] == "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
    blob = await client.get(f"{repository}/blobs/{layer['digest']}")
    assert layer["digest"] == f"sha256:{hashlib.sha256(blob.content).hexdigest()}"
    assert layer["size"] == len(blob.content)
    assert "proxmox-csi-plugin/Chart.yaml" in unpack(blob.content)
    config = (await client.get(f"{repository}/blobs/{manifest['config']['digest']}")).json()
    assert (config["name"], config["version"]) == ("proxmox-csi-plugin", "0.5.6")


async def test_a_manifest_by_digest_is_the_manifest_by_tag(client: httpx.AsyncClient) -> None:
    manifests = "https://ghcr.io/v2/sergelogvinov/charts/proxmox-csi-plugin/manifests"
    by_tag = await client.head(f"{manifests}/0.5.6")
    by_digest = await client.get(f"{manifests}/{by_tag.headers['docker-content-digest']}")
    assert int(by_tag.headers["content-length"]) == len(by_digest.content)
    assert by_digest.status_code == 200


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("sergelogvinov/charts/proxmox-csi-plugin/manifests/9.9.9", "MANIFEST_UNKNOWN"),
        ("sergelogvinov/charts/other/manifests/1.0.0", "NAME_UNKNOWN"),
        ("sergelogvinov/charts/other/tags/list", "NAME_UNKNOWN"),
        ("sergelogvinov/charts/proxmox-csi-plugin/blobs/sha256:00", "BLOB_UNKNOWN"),
        ("controlplaneio-fluxcd/flux-operator-manifests/manifests/latest", "MANIFEST_UNKNOWN"),
    ],
)
async def test_what_the_registry_does_not_have(client: httpx.AsyncClient, path: str, code: str) -> None:
    answer = await client.get(f"https://ghcr.io/v2/{path}")
    assert answer.status_code == 404
    assert answer.json()["errors"][0]["code"] == code


async def test_chart_missing_takes_the_tag_out_of_the_registry(client: httpx.AsyncClient, faults: Faults) -> None:
    repository = "https://ghcr.io/v2/sergelogvinov/charts/proxmox-csi-plugin"
    with struck(faults, "chart-missing", "proxmox-csi-plugin"):
        assert (await client.get(f"{repository}/manifests/0.5.6")).status_code == 404
        assert (await client.get(f"{repository}/tags/list")).json()["tags"] == []


async def test_the_flux_distribution_has_the_layout_the_operator_reads(client: httpx.AsyncClient) -> None:
    repository = "https://ghcr.io/v2/controlplaneio-fluxcd/flux-operator-manifests"
    manifest = (await client.get(f"{repository}/manifests/v0.58.1")).json()
    layer = await client.get(f"{repository}/blobs/{manifest['layers'][0]['digest']}")
    assert {"flux/v2.9.4/source-controller.yaml", "flux-images/v2.9.4/upstream-alpine.yaml"} <= set(
        unpack(layer.content)
    )


async def test_gateway_api_crds_one_by_one_and_in_one_file(client: httpx.AsyncClient) -> None:
    raw = "https://raw.githubusercontent.com/kubernetes-sigs/gateway-api/v1.6.1/config/crd/standard"
    crd = await client.get(f"{raw}/gateway.networking.k8s.io_gateways.yaml")
    assert yaml.safe_load(crd.text)["kind"] == "CustomResourceDefinition"
    release = "https://github.com/kubernetes-sigs/gateway-api/releases/download/v1.6.1"
    install = await client.get(f"{release}/standard-install.yaml")
    assert len(list(yaml.safe_load_all(install.text))) == 1
    for missing in (f"{raw}/gateways.yaml", f"{release}/install.yaml", raw.replace("1.6.1", "9.9.9") + "/x.yaml"):
        assert (await client.get(missing)).status_code == 404


async def test_the_operators_release_manifest(client: httpx.AsyncClient) -> None:
    release = "https://github.com/controlplaneio-fluxcd/flux-operator/releases/download/v0.58.1"
    objects = list(yaml.safe_load_all((await client.get(f"{release}/install.yaml")).text))
    assert [item["kind"] for item in objects] == [
        "Namespace",
        "CustomResourceDefinition",
        "ServiceAccount",
        "Deployment",
    ]
    deployment = objects[-1]
    assert deployment["metadata"]["namespace"] == "flux-system"
    assert "namespace" not in objects[1]["metadata"]
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "ghcr.io/x/flux-operator:v0.58.1"
    assert (await client.get(f"{release}/flux-operator.tar.gz")).status_code == 404


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("customization: {}\n", EMPTY_SCHEMATIC),
        ("{}", EMPTY_SCHEMATIC),
        ("customization: {systemExtensions: {officialExtensions: [siderolabs/qemu-guest-agent]}}", QEMU_AGENT),
    ],
)
async def test_schematic_ids_are_the_factorys_own(client: httpx.AsyncClient, text: str, expected: str) -> None:
    answer = await client.post("https://factory.talos.dev/schematics", content=text)
    assert answer.status_code == 201
    assert answer.json() == {"id": expected}


@pytest.mark.parametrize("text", ["customization: {extensions: []}", "customisation: {}", "a: [", "- a"])
async def test_a_schematic_the_factory_would_refuse(client: httpx.AsyncClient, text: str) -> None:
    assert (await client.post("https://factory.talos.dev/schematics", content=text)).status_code == 400


async def test_images_exist_for_known_schematics_and_versions_only(client: httpx.AsyncClient) -> None:
    factory = "https://factory.talos.dev/image"
    image = f"{factory}/{QEMU_AGENT}/v1.13.9/nocloud-amd64.qcow2"
    assert (await client.head(image)).status_code == 404
    body = "customization: {systemExtensions: {officialExtensions: [siderolabs/qemu-guest-agent]}}"
    await client.post("https://factory.talos.dev/schematics", content=body)
    head, whole = await client.head(image), await client.get(image)
    assert int(head.headers["content-length"]) == len(whole.content)
    assert whole.content.startswith(b"QFI\xfb")
    for wrong in (image.replace("1.13.9", "1.13.8"), image.replace("nocloud", "metal"), image + ".gz"):
        assert (await client.head(wrong)).status_code == 404


async def test_an_extension_that_does_not_exist_has_no_image(client: httpx.AsyncClient) -> None:
    body = "customization: {systemExtensions: {officialExtensions: [siderolabs/qemu-agent]}}"
    schematic = (await client.post("https://factory.talos.dev/schematics", content=body)).json()["id"]
    answer = await client.get(f"https://factory.talos.dev/image/{schematic}/v1.13.9/nocloud-amd64.qcow2")
    assert answer.status_code == 400
    assert "siderolabs/qemu-agent" in answer.text


async def test_versions_and_extensions(client: httpx.AsyncClient) -> None:
    factory = "https://factory.talos.dev"
    assert (await client.get(f"{factory}/versions")).json() == ["v1.13.9"]
    extensions = (await client.get(f"{factory}/version/v1.13.9/extensions/official")).json()
    assert "siderolabs/qemu-guest-agent" in [extension["name"] for extension in extensions]
    assert (await client.get(f"{factory}/version/v1.0.0/extensions/official")).status_code == 404


async def test_fetch_tells_size_and_type(internet: Internet, faults: Faults) -> None:
    url = f"https://factory.talos.dev/image/{EMPTY_SCHEMATIC}/v1.13.9/nocloud-amd64.qcow2"
    assert await internet.fetch(url) == RemoteFile(url=url, size=1 << 20, mimetype="application/octet-stream")
    with struck(faults, "image-factory-down"), pytest.raises(LookupError, match="503"):
        await internet.fetch(url)
    with pytest.raises(LookupError, match="404"):
        await internet.fetch("https://example.org/image.qcow2")


async def test_unknown_hosts_and_paths_are_told_and_logged(client: httpx.AsyncClient, log: RequestLog) -> None:
    answer = await client.get("https://registry-1.docker.io/v2/")
    assert answer.status_code == 404
    assert "registry-1.docker.io" in answer.text
    (entry,) = log.entries()
    assert (entry["path"], entry["status"], entry["write"]) == ("registry-1.docker.io/v2/", 404, False)


def test_names_come_from_the_stack_and_the_fixed_sites(internet: Internet) -> None:
    assert {"git.home.arpa", "ghcr.io", "factory.talos.dev", "helm.cilium.io", "github.com"} <= set(internet.names())


async def test_a_workshop_makes_a_thing_once_and_tries_again_after_a_failure(tmp_path: Path) -> None:
    asked: list[str] = []

    def modules(module: str, version: str) -> Path:
        asked.append(f"{module}@{version}")
        if len(asked) == 1:
            raise LookupError(module)
        return tmp_path

    workshop = Workshop(modules)
    with pytest.raises(LookupError):
        await workshop.make("m", "v1", str, key="k")
    made = await asyncio.gather(*(workshop.make("m", "v1", str, key="k") for _ in range(3)))
    assert made == [str(tmp_path)] * 3
    assert asked == ["m@v1"] * 2


def test_the_same_files_pack_to_the_same_bytes() -> None:
    from lab.internet.archive import pack

    assert pack({"b": b"2", "a": b"1"}) == pack({"a": b"1", "b": b"2"})
    assert json.dumps(sorted(unpack(pack({"b": b"2", "a": b"1"})))) == '["a", "b"]'
