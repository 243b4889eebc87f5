"""Cilium inline: a committed file that is taken only when it is made from this very stack."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pulumi
import pytest

from components import cilium_manifest
from tests.engine import run
from tests.stackfiles import cluster

RENDER = cilium_manifest.render
BODY = "kind: DaemonSet\nmetadata: {name: cilium}\n"


def inline(values: dict[str, Any] | None = None) -> Any:
    return cluster("infra", {"cilium": {"install": "inline", "values": values or {}}})


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(cilium_manifest, "PROJECT", tmp_path)
    monkeypatch.setattr(cilium_manifest, "render", lambda _: BODY)
    return tmp_path


def test_a_written_file_is_taken_and_a_missing_stale_or_edited_one_is_not() -> None:
    with pytest.raises(pulumi.RunError, match=r"cilium-infra\.yaml is missing; run `make cilium-manifest STACK=infra`"):
        cilium_manifest.manifests(inline())
    file = cilium_manifest.write(inline())
    assert cilium_manifest.manifests(inline()) == [{"name": "cilium", "contents": BODY}]
    with pytest.raises(pulumi.RunError, match="was not made from this version"):
        cilium_manifest.manifests(inline({"debug": {"enabled": True}}))
    file.write_text(file.read_text() + "# by hand\n")
    with pytest.raises(pulumi.RunError, match="make cilium-manifest"):
        cilium_manifest.manifests(inline())


def test_no_secret_gets_into_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    body = "kind: Secret\nmetadata: {name: cilium-ca}\n"
    monkeypatch.setattr(cilium_manifest, "render", lambda _: body)
    with pytest.raises(SystemExit, match="cilium-ca"):
        cilium_manifest.write(inline())
    file = cilium_manifest.manifest_file(inline())
    file.parent.mkdir()
    file.write_text(cilium_manifest.stamp(inline(), body) + body)
    with pytest.raises(pulumi.RunError, match="holds the Secret cilium-ca"):
        cilium_manifest.manifests(inline())


def test_inline_talos_gets_the_file_pulumi_makes_no_release_and_the_gates_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def change(stack: dict[str, Any]) -> None:
        stack["cilium"]["install"] = "inline"

    whole = run("infra", monkeypatch)
    cilium_manifest.write(inline())
    graph = run("infra", monkeypatch, change)
    gates = [{each.name for each in made.of_type("dynamic/groundwork:Gate")} for made in (whole, graph)]
    assert gates[0] == gates[1]
    assert graph.of_type("helm.sh/v3:Release") == []
    told = [json.dumps(arguments) for _, arguments in graph.invokes if "DaemonSet" in json.dumps(arguments)]
    assert len(told) == 3
    workloads = graph.one("dynamic/groundwork:Gate", "infra-cilium-workloads").urn
    assert graph.one("dynamic/groundwork:Gate", "infra-crds").urn in graph.behind(workloads)


def test_definitions_come_before_what_helm_renders_from_the_same_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    helm = tmp_path / "helm"
    helm.write_text(
        '#!/bin/sh\necho "kind: DaemonSet"\necho "metadata: {name: cilium, arguments: \'$*\'}"\nsed "s/^/# /"\n'
    )
    helm.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    answer = httpx.Response(200, text="kind: CustomResourceDefinition", request=httpx.Request("GET", "https://x"))
    monkeypatch.setattr(httpx, "get", lambda *_, **__: answer)
    monkeypatch.setattr(cilium_manifest, "PROJECT", Path(__file__).parent.parent)
    monkeypatch.setattr(cilium_manifest, "manifest_file", lambda _: tmp_path / "manifests" / "out.yaml")
    monkeypatch.setattr(cilium_manifest, "render", RENDER)
    monkeypatch.setattr(cilium_manifest, "secrets_in", lambda _: [])
    cilium_manifest.main("infra")
    text = (tmp_path / "manifests" / "out.yaml").read_text()
    assert text.index("CustomResourceDefinition") < text.index("DaemonSet")
    assert "--version 1.20.1 --namespace kube-system" in text
    assert "# k8sServiceHost: localhost" in text


def test_without_helm_or_when_it_fails_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = cluster("infra", {"cilium": {"gateway_api": False}})
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match="helm is not on the PATH"):
        RENDER(config)
    helm = tmp_path / "helm"
    helm.write_text("#!/bin/sh\necho no such chart >&2\nexit 1\n")
    helm.chmod(0o700)
    with pytest.raises(SystemExit, match="no such chart"):
        RENDER(config)
