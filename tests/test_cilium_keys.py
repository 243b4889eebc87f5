"""Every key of Cilium's values is one the chart reads."""

from __future__ import annotations

from pathlib import Path

import pulumi
import pytest

from components import cilium_keys, cilium_values
from config import chart_keys
from tests.engine import STACKS, run
from tests.stackfiles import cluster

VALUES = """\
# -- Configure the first thing.
first:
  # -- Whether.
  enabled: true
  # -- How long.
  # duration: 15s
  # -- Where.
  # ref: https://example.org
  place: {}
  # written: only for people
nodeSelector:
  kubernetes.io/os: linux
nothing: null
several: []
# config:
#   deep: 1
"""
TEMPLATE = """\
{{ .Values.first.enabled }} {{ .Values.config }} {{ .Values.undocumented.key }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
"""


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    (tmp_path / "templates").mkdir()
    (tmp_path / "Chart.yaml").write_text("name: cilium\nversion: 0.0.1\n")
    (tmp_path / "values.yaml").write_text(VALUES)
    (tmp_path / "templates" / "one.yaml").write_text(TEMPLATE)
    (tmp_path / "templates" / "validate.yaml").write_text("{{ .Values.config.gone }} {{ .Values.written }}")
    return tmp_path


def test_keys_are_what_the_chart_sets_shows_and_hands_on(chart: Path) -> None:
    assert cilium_keys.keys(chart) == [
        "config.*",
        "first",
        "first.duration",
        "first.enabled",
        "first.place.*",
        "nodeSelector.*",
        "nothing.*",
        "several.*",
    ]


def test_a_list_is_named_after_the_charts_version(chart: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chart_keys, "LISTS", chart)
    cilium_keys.main(chart)
    assert (chart / "cilium-0.0.1.keys.txt").read_text().startswith("config.*\nfirst\n")


@pytest.mark.parametrize(
    "change",
    [{}, {"encryption": "wireguard"}, {"announce": "bgp", "bgp": {"local_asn": 1, "peers": []}}],
    ids=["as-committed", "encrypted", "bgp"],
)
@pytest.mark.parametrize("stack", STACKS)
def test_the_chart_reads_every_value_we_set(stack: str, change: dict[str, object]) -> None:
    config = cluster(stack)
    config = config.model_copy(update={"cilium": config.cilium.model_copy(update=change)})
    keys = chart_keys.chart_keys(config.versions.cilium)
    assert keys
    assert list(keys.dead(cilium_values.values(config))) == []
    cilium_values.check(config, stack)


def test_a_key_the_chart_has_renamed_stops_before_anything_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cilium_values, "bootstrap_values", lambda _: {"cgroup": {"automount": {"enabled": False}}})
    with pytest.raises(pulumi.RunError, match=r"cgroup\.automount.*\n.*did you mean cgroup\.autoMount\?"):
        run("infra", monkeypatch)


def test_below_free_maps_anything_goes_and_below_others_nothing() -> None:
    keys = chart_keys.chart_keys("1.20.1")
    assert keys
    assert list(keys.dead({"podAnnotations": {"a.b/c": "d"}, "hubble": {"relay": {"resources": {"limits": {}}}}})) == []
    assert [path for path, _ in keys.dead({"hubble": {"enabled": True, "relais": {}}})] == [("hubble", "relais")]


def test_a_suggestion_is_made_only_where_one_key_fits() -> None:
    keys = chart_keys.ChartKeys(frozenset({("a",), ("a", "enabled"), ("b",), ("b", "enabled"), ("b", "deep", "*")}))
    assert dict(keys.dead({"zzz": 1, "enabled": 1, "deep": 1, "a": {"enable": 1}})) == {
        ("zzz",): "remove it; the chart reads no such key",
        ("enabled",): "remove it; the chart reads no such key",
        ("deep",): "did you mean b.deep?",
        ("a", "enable"): "did you mean a.enabled?",
    }


def test_without_a_list_a_warning_says_that_nothing_was_checked() -> None:
    config = cluster("infra", {"cilium": {"values": {"wrong": 1}}})
    config = config.model_copy(update={"versions": config.versions.model_copy(update={"cilium": "1.20.99"})})
    (problem,) = chart_keys.values_are_keys_of_the_chart(config)
    assert problem.warning
    assert "cilium-1.20.99.keys.txt" in problem.message
