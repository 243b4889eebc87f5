"""The project's own tree, built by kustomize and compared with the charts it installs."""

from __future__ import annotations

from pathlib import Path

import pytest

from flux_analyser.analysis import analyse
from flux_analyser.build import Report, with_program
from flux_analyser.cluster import Reader
from flux_analyser.step import Document
from flux_analyser.text import report
from lab.internet.chart_source import chart_sources
from lab.toolchain.programs import Programs

pytestmark = pytest.mark.lab

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def charts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every chart of the lab's internet, by name."""
    directory = tmp_path_factory.mktemp("charts")
    programs = Programs()
    for source in chart_sources({}):
        for version in source.versions.values():
            module = programs.module_directory(source.module, version)
            (directory / source.name).symlink_to(module / source.directory)
    return directory


@pytest.mark.parametrize("cluster", ["infra", "apps"])
@pytest.mark.parametrize("switch", ["enabled", "disabled"])
async def test_the_tree_is_sound_with_every_switch_either_way(charts: Path, cluster: str, switch: str) -> None:
    kubectl = await Programs().resolve("kubectl")
    switches = dict.fromkeys(("CSI", "GATEWAY", "BGP", "METRICS", "PROMETHEUS_RULES"), switch)
    found = Reader(ROOT, with_program(str(kubectl)), switches).read(ROOT / "gitops/clusters" / cluster)
    analysis = analyse(found, charts)
    assert not analysis.failed, report(analysis)
    kinds = {item["kind"] for _, item in found.objects()}
    assert ({"Gateway", "PrometheusRule", "CiliumBGPClusterConfig"} <= kinds) == (switch == "enabled")


def test_a_key_that_the_chart_does_not_know_is_found(charts: Path) -> None:
    found = Reader(ROOT, _with_a_typing_error, {}).read(ROOT / "gitops/clusters/infra")
    assert "values" in {finding.rule for finding in analyse(found, charts).findings}


def _with_a_typing_error(directory: Path, _report: Report) -> list[Document]:
    if directory.name != "infra":
        values = {"keyRenewPeriod": "0"}
        chart = {"spec": {"chart": "sealed-secrets", "version": "2.18.4"}}
        release = {"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": {"name": "x"}}
        return [{**release, "spec": {"chart": chart, "values": values}}]
    step = {"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": {"name": "a"}}
    return [{**step, "spec": {"path": "./gitops/apps", "sourceRef": {"kind": "GitRepository", "name": "x"}}}]
