"""The analyser on small trees with one mistake each, and on the project's own tree."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from flux_analyser.__main__ import main
from flux_analyser.analysis import Analysis, analyse
from flux_analyser.build import plain
from flux_analyser.cluster import Reader, find_clusters
from flux_analyser.graph import Graph
from flux_analyser.svg import draw
from flux_analyser.text import report

ROOT = Path(__file__).parent.parent
Document = dict[str, Any]


def step(name: str, *needs: str, path: str | None = None, **spec: Any) -> Document:
    return {
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
        "kind": "Kustomization",
        "metadata": {"name": name, "namespace": "flux-system"},
        "spec": {
            "interval": "1h",
            "retryInterval": "30s",
            "timeout": "5m",
            "wait": True,
            "path": path or f"./{name}",
            "sourceRef": {"kind": "GitRepository", "name": "flux-system"},
            "dependsOn": [{"name": need, "namespace": "flux-system"} for need in needs],
            **spec,
        },
    }


def release(name: str, chart: str, version: str = "1.0.0", **spec: Any) -> Document:
    return {
        "apiVersion": "helm.toolkit.fluxcd.io/v2",
        "kind": "HelmRelease",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"timeout": "3m", "chart": {"spec": {"chart": chart, "version": version}}, **spec},
    }


def thing(kind: str, name: str = "a", version: str = "v1", **more: Any) -> Document:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": "default"}, **more}


def definition(group: str, kind: str) -> Document:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.lower()}s.{group}"},
        "spec": {"group": group, "names": {"kind": kind}},
    }


class Tree:
    """A repository in which `cluster/` is where Flux starts."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, directory: str, *documents: Document, name: str = "objects.yaml") -> Tree:
        path = self.root / directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump_all(documents), encoding="utf-8")
        return self

    def analyse(self, charts: Path | None = None, **settings: str) -> Analysis:
        (cluster,) = find_clusters(self.root, plain, settings)
        assert cluster.name == "cluster"
        return analyse(cluster, charts)

    def failures(self, charts: Path | None = None, **settings: str) -> list[tuple[str, str]]:
        found = self.analyse(charts, **settings).findings
        return [(finding.rule, finding.where) for finding in found if finding.level == "failure"]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def two(tree: Tree, first: Document, second: Document, *objects: Document) -> Tree:
    """Two steps; the objects are the second one's."""
    return tree.write("cluster", first, second).write("a", thing("ConfigMap")).write("b", *objects)


def test_a_sound_tree_has_nothing_to_report(tree: Tree) -> None:
    analysis = two(tree, step("a"), step("b", "a"), thing("ConfigMap", "b")).analyse()
    assert analysis.findings == []
    assert analysis.graph.tiers == [["flux-system/a"], ["flux-system/b"]]
    assert not analysis.failed


def test_a_dependency_names_its_namespace(tree: Tree) -> None:
    bare = step("b", dependsOn=[{"name": "a"}])
    assert two(tree, step("a"), bare, thing("ConfigMap", "b")).failures() == [("namespace", "flux-system/b")]


def test_a_dependency_exists(tree: Tree) -> None:
    assert two(tree, step("a"), step("b", "c"), thing("ConfigMap", "b")).failures() == [("unknown", "flux-system/b")]


def test_steps_that_wait_for_each_other(tree: Tree) -> None:
    analysis = two(tree, step("a", "b"), step("b", "a"), thing("ConfigMap", "b")).analyse()
    assert [finding.rule for finding in analysis.findings] == ["cycle"]
    assert "circle" in report(analysis)


def test_a_step_that_depends_on_the_one_that_waits_for_it(tree: Tree) -> None:
    """No dependency names the other way round, yet neither can ever be Ready."""
    tree.write("cluster", step("a", timeout="9m")).write("a", step("b", "a")).write("b", thing("ConfigMap"))
    assert [rule for rule, _ in tree.failures()] == ["cycle"]


def test_what_depends_on_a_waiting_step_waits_for_all_below_it(tree: Tree) -> None:
    tree.write("cluster", step("a", timeout="9m"), step("c", "a"))
    tree.write("a", step("b")).write("b", thing("ConfigMap")).write("c", thing("ConfigMap", "c"))
    graph = tree.analyse().graph
    assert graph.waits_for["flux-system/c"] == {"flux-system/a", "flux-system/b"}


def test_wait_beside_health_checks(tree: Tree) -> None:
    check = {"apiVersion": "v1", "kind": "ConfigMap", "name": "b", "namespace": "default"}
    both = step("b", healthChecks=[check])
    assert two(tree, step("a"), both, thing("ConfigMap", "b")).failures() == [("health", "flux-system/b")]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("csi-plugin-controller", []),  # may be the chart's
        ("csi-controller", [("health", "flux-system/b")]),
    ],
)
def test_health_checks_on_names_that_are_not_there(tree: Tree, name: str, expected: list[tuple[str, str]]) -> None:
    check = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "namespace": "default"}
    checked = step("b", wait=False, healthChecks=[check])
    assert two(tree, step("a"), checked, release("csi-plugin", "csi-plugin")).failures() == expected


def test_a_custom_resource_beside_its_definition(tree: Tree) -> None:
    objects = definition("example.org", "Widget"), thing("Widget", version="example.org/v1")
    assert two(tree, step("a"), step("b"), *objects).failures() == [("crd", "flux-system/b")]


def test_a_custom_resource_before_its_definition(tree: Tree) -> None:
    tree.write("cluster", step("a"), step("b")).write("a", definition("example.org", "Widget"))
    tree.write("b", thing("Widget", version="example.org/v1"))
    assert tree.failures() == [("crd", "flux-system/b")]
    tree.write("cluster", step("a"), step("b", "a"))
    assert tree.failures() == []


def test_a_custom_resource_beside_the_release_that_defines_it(tree: Tree) -> None:
    objects = release("sealed-secrets", "sealed-secrets"), thing("SealedSecret", version="bitnami.com/v1alpha1")
    assert two(tree, step("a"), step("b"), *objects).failures() == [("crd", "flux-system/b")]


def test_two_owners_of_one_definition(tree: Tree) -> None:
    crd = definition("example.org", "Widget")
    tree.write("cluster", step("a"), step("b")).write("a", crd).write("b", crd)
    assert [rule for rule, _ in tree.failures()] == ["owner"]


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("cilium", "coredns"),
        ("coredns", "cert-manager"),
        ("coredns", "metrics-server"),
        ("sealed-secrets", "proxmox-csi-plugin"),
        ("proxmox-cloud-controller-manager", "proxmox-csi-plugin"),
    ],
)
def test_missing_critical_edges(tree: Tree, earlier: str, later: str) -> None:
    tree.write("cluster", step("a"), step("b")).write("a", release("x", earlier)).write("b", release("y", later))
    assert tree.failures() == [("critical", "flux-system/b")]
    tree.write("cluster", step("a"), step("b", "a"))
    assert tree.failures() == []


def test_what_is_not_in_the_tree_is_provided(tree: Tree) -> None:
    analysis = two(tree, step("a"), step("b"), release("coredns", "coredns")).analyse()
    assert analysis.findings == []
    assert "cilium" in report(analysis)


def test_a_release_that_may_take_longer_than_its_step(tree: Tree) -> None:
    slow = release("x", "x", timeout="5m")
    assert two(tree, step("a"), step("b"), slow).failures() == [("timeout", "flux-system/b")]


def test_a_step_that_may_take_longer_than_the_one_that_waits_for_it(tree: Tree) -> None:
    tree.write("cluster", step("a")).write("a", step("b", timeout="10m")).write("b", thing("ConfigMap"))
    assert tree.failures() == [("timeout", "flux-system/a")]


def test_a_storage_operator_on_a_consumer(tree: Tree) -> None:
    two(tree, step("a"), step("b"), release("rook-ceph", "rook-ceph"))
    assert tree.failures(STORAGE_ROLE="provider") == []
    assert tree.failures(STORAGE_ROLE="consumer") == [("storage", "flux-system/b")]


def test_one_chart_in_two_versions(tree: Tree) -> None:
    tree.write("cluster", step("a"), step("b")).write("a", release("x", "redis", "1.0.0"))
    tree.write("b", release("y", "redis", "2.0.0"))
    assert tree.failures() == [("skew", "cluster")]


def test_a_chart_from_a_registry_is_named_by_its_source(tree: Tree) -> None:
    source = thing("OCIRepository", "web", spec={"url": "oci://example.org/charts/redis", "ref": {"tag": "2.0.0"}})
    by_reference = thing(
        "HelmRelease", "y", spec={"timeout": "3m", "chartRef": {"kind": "OCIRepository", "name": "web"}}
    )
    tree.write("cluster", step("a"), step("b")).write("a", release("x", "redis", "1.0.0"))
    tree.write("b", by_reference, source)
    assert tree.failures() == [("skew", "cluster")]


def test_values_the_chart_does_not_know(tree: Tree, tmp_path: Path) -> None:
    two(tree, step("a"), step("b"), release("x", "x", values={"config": {"existingSecret": 1}, "labels": {"any": 1}}))
    charts = tmp_path / ".charts"
    tree.write(".charts/x", {"config": {"name": ""}, "labels": {}}, name="values.yaml")
    assert tree.failures() == []
    (finding,) = (found for found in tree.analyse(charts).findings if found.rule == "values")
    assert "config.existingSecret" in finding.message


def test_a_plain_secret(tree: Tree) -> None:
    two(tree, step("a"), step("b"), thing("Secret", stringData={"password": "x"}))
    assert tree.failures() == [("secret", "flux-system/b")]


def test_softer_things_are_warnings(tree: Tree) -> None:
    loose = step("a", wait=False)
    del loose["spec"]["retryInterval"]
    analysis = two(tree, loose, step("b", "a"), release("x", "x", "^1.0.0")).analyse()
    assert {finding.rule for finding in analysis.findings} == {"health", "retry", "pin"}
    assert not analysis.failed


def test_variables_come_from_settings_maps_and_defaults(tree: Tree) -> None:
    build = {"substituteFrom": [{"kind": "ConfigMap", "name": "settings"}], "substitute": {"SECOND": "two"}}
    tree.write("cluster", step("a", postBuild=build), thing("ConfigMap", "settings", data={"FIRST": "one"}))
    tree.write("a", *(step(name, path=f"./${{{name}}}") for name in ("FIRST", "SECOND", "THIRD:=three", "FOURTH")))
    for name in ("one", "two", "three"):
        tree.write(name, thing("ConfigMap", name))
    analysis = tree.analyse()
    assert [finding.where for finding in analysis.findings if finding.rule == "variable"] == ["flux-system/FOURTH"]
    assert {item["metadata"]["name"] for _, item in analysis.cluster.objects()} >= {"one", "two", "three"}


def test_a_kustomization_is_followed_and_what_is_not_read_is_told(tree: Tree) -> None:
    tree.write(
        "cluster", {"resources": ["../shared", "steps.yaml", "gone.yaml"], "patches": []}, name="kustomization.yaml"
    )
    tree.write("cluster", step("a"), name="steps.yaml").write("cluster", step("ignored"), name="other.yaml")
    tree.write("shared", {"resources": ["b.yaml"], "namespace": "flux-system"}, name="kustomization.yaml")
    tree.write("shared", step("b"), name="b.yaml").write("a", thing("ConfigMap")).write("b", thing("ConfigMap", "b"))
    cluster = Reader(tree.root, plain, {}).read(tree.root / "cluster")
    assert set(cluster.steps) == {"flux-system/a", "flux-system/b"}
    assert {(finding.rule, finding.level) for finding in cluster.findings} == {
        ("build", "failure"),
        ("unread", "warning"),
    }


def test_the_picture_is_well_formed_and_has_every_step(tree: Tree) -> None:
    analysis = two(tree, step("a"), step("b", "a"), thing("ConfigMap", "b")).analyse()
    picture = ElementTree.fromstring(draw(analysis.graph))  # noqa: S314 -- our own
    texts = [element.text for element in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert texts == ["a", "b"]
    assert len(list(picture.iter("{http://www.w3.org/2000/svg}path"))) == 1


def test_the_command(tree: Tree, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tree.root)]) == 2
    two(tree, step("a"), step("b", "a"), thing("ConfigMap", "b"))
    assert main([str(tree.root), "--svg", str(tree.root / "pictures")]) == 0
    assert "critical path, 2 steps, at most 10 min: a → b" in capsys.readouterr().out
    assert (tree.root / "pictures/cluster.svg").is_file()
    two(tree, step("a"), step("b", "c"), thing("ConfigMap", "b"))
    assert main([str(tree.root)]) == 1


def test_the_projects_own_tree_is_sound() -> None:
    clusters = find_clusters(ROOT / "gitops", plain, {})
    assert [cluster.name for cluster in clusters] == ["gitops/clusters/apps", "gitops/clusters/infra"]
    for cluster in clusters:
        analysis = analyse(cluster)
        assert not analysis.failed, report(analysis)
        chain = [key.removeprefix("flux-system/") for key in Graph.of(cluster).critical_path]
        assert chain == ["settings", "repositories", "sealed-secrets", "sealed", "storage", "infrastructure", "apps"]
