"""The resolver with a stand-in for Go: order, atomicity, locks, refusals and their messages."""

import asyncio
import hashlib
import importlib.metadata
import io
import json
import os
import re
import shutil
import sys
import tarfile
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from rich.console import Console

from lab.toolchain import go, official
from lab.toolchain.builder import HERE, place
from lab.toolchain.cache import Cache
from lab.toolchain.catalogue import RECIPES
from lab.toolchain.errors import ToolchainError
from lab.toolchain.programs import Programs
from lab.toolchain.recipe import Build, Copy, Patch, Program, Recipe
from lab.toolchain.reporter import Bars

TOOL = Recipe(
    name="tool",
    version="1.2.3",
    programs=(Program(name="tool", version="1.2.3"), Program(name="alias", version="1.2.3", ask=(), plugin="alias")),
    builds=(Build(package="example.org/tool", output="tool"),),
    links={"alias": "tool"},
    space=0.001,
)

FAKE_GO = """#!/bin/sh
echo "$@" >> "$CALLS"
case "$1" in
  env) echo ${GO_IS:-go1.26.6} ;;
  list) printf 'stale\\nstale\\n' ;;
  build)
    [ -n "$GO_SAYS" ] && { echo "$GO_SAYS" >&2; exit 1; }
    [ -n "$GO_TAKES" ] && sleep "$GO_TAKES"
    while [ "$1" != -o ]; do shift; done
    printf '#!/bin/sh\\necho built 1.2.3\\n' > "$2"; chmod +x "$2" ;;
esac
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with nothing on PATH but a shell's tools and a Go that writes down how it is called."""
    directory = tmp_path / "bin"
    directory.mkdir()
    (directory / "go").write_text(FAKE_GO)
    (directory / "go").chmod(0o755)
    monkeypatch.setenv("PATH", f"{directory}:/usr/bin:/bin")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    return tmp_path / "calls"


def programs(tmp_path: Path, table: Path = official.TABLE) -> Programs:
    return Programs(root=tmp_path / "cache", recipes=(TOOL,), table=table)


def builds(calls: Path) -> int:
    return sum(line.startswith("build ") for line in calls.read_text().splitlines()) if calls.exists() else 0


async def test_builds_once_and_is_found_in_the_cache_afterwards(tmp_path: Path, calls: Path) -> None:
    path = await programs(tmp_path).resolve("tool")
    again = programs(tmp_path)
    assert await again.resolve("tool") == path == again.path("tool")
    assert await again.resolve("alias") == path.with_name("alias")
    assert builds(calls) == 1
    assert [(item.name, item.origin) for item in again.inventory()] == [("tool", "built"), ("alias", "built")]


async def test_two_starts_at_once_build_once(tmp_path: Path, calls: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GO_TAKES", "0.3")
    await asyncio.gather(programs(tmp_path).resolve("tool"), programs(tmp_path).resolve("tool"))
    assert builds(calls) == 1


async def test_interrupted_it_leaves_nothing_half_made_and_goes_on(
    tmp_path: Path, calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GO_TAKES", "30")
    task = asyncio.create_task(programs(tmp_path).resolve("tool"))
    for _ in range(500):
        if builds(calls):
            break
        await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [path.name for path in (tmp_path / "cache" / "tool").iterdir()] == [".lock"]
    monkeypatch.delenv("GO_TAKES")
    assert (await programs(tmp_path).resolve("tool")).exists()


def test_what_a_killed_start_left_is_cleared_away(tmp_path: Path) -> None:
    leftover = tmp_path / "tool" / ".making-dead"
    leftover.mkdir(parents=True)
    with Cache(tmp_path).publish("tool", "1"):
        pass
    assert not leftover.exists()
    assert (tmp_path / "tool" / "1").is_dir()


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("write /x: no space left on device", "XDG_CACHE_HOME"),
        ("reading x.zip: 403 Forbidden", "cannot be fetched"),
        ("dial tcp: lookup x: no such host", "cannot be fetched"),
        ("main.go:3: undefined: x", "undefined: x"),
    ],
)
async def test_a_failed_build_says_the_way_out(
    tmp_path: Path, calls: Path, monkeypatch: pytest.MonkeyPatch, said: str, expected: str
) -> None:
    monkeypatch.setenv("GO_SAYS", said)
    with pytest.raises(ToolchainError, match=expected):
        await programs(tmp_path).resolve("tool")
    assert programs(tmp_path).inventory()[0].origin == "not there yet"


async def test_refuses_before_a_disk_is_full(tmp_path: Path, calls: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(1, 1, 0))
    with pytest.raises(ToolchainError, match=r"Not enough space to build tool: 0\.0 GiB"):
        await programs(tmp_path).resolve("tool")
    assert builds(calls) == 0


def test_without_go_the_message_names_both_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(ToolchainError, match=r"install Go 1\.26.*PATH"):
        go.find(tmp_path)


@pytest.mark.parametrize("version", ["go1.26.5", "go1.9", "devel"])
def test_a_go_too_old_is_as_good_as_none(
    tmp_path: Path, calls: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    monkeypatch.setenv("GO_IS", version)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(ToolchainError, match="Go is missing"):
        go.find(tmp_path)


@pytest.mark.parametrize(("said", "origin"), [("v1.2.3", "path"), ("v1.2.30", "built"), ("1.2.3.1", "built")])
async def test_path_counts_only_in_the_pinned_version(tmp_path: Path, calls: Path, said: str, origin: str) -> None:
    script = calls.parent / "bin" / "tool"
    script.write_text(f"#!/bin/sh\necho tool {said}\n")
    script.chmod(0o755)
    found = programs(tmp_path)
    assert (await found.resolve("tool") == script) is (origin == "path")
    assert programs(tmp_path).path("tool") == found.path("tool")
    assert programs(tmp_path).inventory()[0].origin == origin


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """A vendor's file server on the loopback."""
    served = tmp_path / "served"
    served.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Silent, directory=str(served))) as http:
        thread = threading.Thread(target=http.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{http.server_port}"
        http.shutdown()
        thread.join()


class _Silent(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


def archive(tmp_path: Path) -> str:
    """Serve an archive with the program; its SHA-256."""
    (tmp_path / "program").write_text("#!/bin/sh\necho official\n")
    file = tmp_path / "served" / "tool.tar.gz"
    with tarfile.open(file, "w:gz") as tar:
        tar.add(tmp_path / "program", "tool-1.2.3/tool")
        tar.add(tmp_path / "program", "tool-1.2.3/alias")
    return hashlib.sha256(file.read_bytes()).hexdigest()


def table(tmp_path: Path, url: str, sha256: str) -> Path:
    members = {"tool": "tool-1.2.3/tool", "alias": "tool-1.2.3/alias"}
    entry = {"recipe": "tool", "version": "1.2.3", "machine": official.machine(), "url": url, "sha256": sha256}
    (tmp_path / "table.json").write_text(json.dumps([{**entry, "members": members}]))
    return tmp_path / "table.json"


async def test_an_official_download_is_taken_instead_of_a_build(tmp_path: Path, calls: Path, server: str) -> None:
    pinned = table(tmp_path, f"{server}/tool.tar.gz", archive(tmp_path))
    found = programs(tmp_path, table=pinned)
    assert "official" in (await found.resolve("tool")).read_text()
    assert os.access(found.path("alias"), os.X_OK)
    assert found.inventory()[0].origin == "official"
    assert builds(calls) == 0


async def test_a_download_with_another_sum_is_refused(tmp_path: Path, calls: Path, server: str) -> None:
    archive(tmp_path)
    pinned = table(tmp_path, f"{server}/tool.tar.gz", "0" * 64)
    with pytest.raises(ToolchainError, match="is pinned"):
        await programs(tmp_path, table=pinned).resolve("tool")
    assert [path.name for path in (tmp_path / "cache" / "tool").iterdir()] == [".lock"]
    assert builds(calls) == 0


async def test_what_cannot_be_downloaded_is_built(tmp_path: Path, calls: Path, server: str) -> None:
    found = programs(tmp_path, table=table(tmp_path, f"{server}/absent.tar.gz", "0" * 64))
    await found.resolve("tool")
    assert found.inventory()[0].origin == "built"


def test_the_committed_table_of_downloads_is_complete() -> None:
    for entry in json.loads(official.TABLE.read_text()):
        assert re.fullmatch(r"[0-9a-f]{64}", entry["sha256"])
        assert entry["members"]


async def test_plugins_lie_where_the_engine_looks(tmp_path: Path, calls: Path) -> None:
    found = programs(tmp_path)
    await found.resolve("alias")
    home = found.plugin_home(tmp_path / "home")
    assert (home / "plugins" / "resource-alias-v1.2.3" / "alias").resolve() == found.path("tool")


async def test_the_bar_ends_when_every_program_is_there(tmp_path: Path, calls: Path) -> None:
    bars = Bars(Console(file=io.StringIO()), 2)
    await Programs(root=tmp_path / "cache", recipes=(TOOL,), reporter=bars).resolve_all(["tool", "alias"])
    assert [(task.completed, task.total) for task in bars.progress.tasks] == [(2, 2)]


def test_an_unknown_name_and_one_not_made_yet_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match="No program is called nonsense"):
        programs(tmp_path).path("nonsense")
    with pytest.raises(ToolchainError, match=r"lab\.toolchain build tool"):
        programs(tmp_path).path("tool")


def test_a_patch_that_does_not_fit_any_more_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "module"
    source.mkdir()
    (source / "a.go").write_text("one two")
    fits = Copy(
        module="m",
        version="v1",
        sum="",
        target="up",
        patches=(Patch(file="a.go", old="two", new="three"),),
        added={"b/c": "x"},
    )
    place(fits, source, tmp_path)
    assert (tmp_path / "up" / "a.go").read_text() == "one three"
    assert (tmp_path / "up" / "b" / "c").read_text() == "x"
    with pytest.raises(ToolchainError, match="exactly once"):
        place(fits, tmp_path / "up", tmp_path / "again")


PLUGIN_PACKAGES = {
    "command": "pulumi-command",
    "kubernetes": "pulumi-kubernetes",
    "proxmoxve": "pulumi-proxmoxve",
    "talos": "pulumiverse-talos",
    "tls": "pulumi-tls",
}


def test_plugins_answer_with_the_version_of_the_sdk() -> None:
    plugins = {program.plugin: program.version for recipe in RECIPES for program in recipe.programs if program.plugin}
    assert plugins == {name: importlib.metadata.version(package) for name, package in PLUGIN_PACKAGES.items()}


def test_every_wrapper_has_its_sums() -> None:
    wrappers = {build.wrapper for recipe in RECIPES for build in recipe.builds if build.wrapper}
    assert wrappers
    assert [name for name in wrappers if not (HERE / name / "go.sum").read_text().strip()] == []


def test_programs_of_the_cluster_have_the_versions_of_their_modules() -> None:
    required = dict(re.findall(r"^\t(\S+) v(\S+)$", (HERE / "cluster" / "go.mod").read_text(), re.MULTILINE))
    for recipe in RECIPES:
        for build in recipe.builds:
            owner = max((module for module in required if build.package.startswith(module)), key=len, default=None)
            if build.wrapper == "cluster" and owner:
                assert recipe.version == required[owner]
