"""What is committed about Cilium's chart, made again from the chart itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from components import cilium_keys
from config.chart_keys import LISTS
from lab.toolchain.programs import Programs

pytestmark = pytest.mark.lab

COMMITTED = sorted(LISTS.glob("cilium-*.keys.txt"))


@pytest.mark.parametrize("file", COMMITTED, ids=lambda file: file.name)
def test_the_list_of_keys_is_the_charts(file: Path) -> None:
    version = file.name.removeprefix("cilium-").removesuffix(".keys.txt")
    chart = Programs().module_directory("github.com/cilium/cilium", f"v{version}") / "install/kubernetes/cilium"
    assert cilium_keys.keys(chart) == file.read_text().split()
