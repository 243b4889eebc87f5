import os
import stat
import subprocess
from pathlib import Path

import pytest

from lab import setting
from lab.environment import Credentials, program_environment, read, read_credentials, write
from lab.run_directory import LabError, RunDirectory, known, write_private
from lab.stackfile import StackFile
from lab.staging import copy_working_tree, git, repository, stage

PROJECT = Path(__file__).parent.parent


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    run = RunDirectory.of(tmp_path, "try")
    os.close(run.claim())
    return run


@pytest.fixture
def infra() -> StackFile:
    return StackFile.read(PROJECT / "Pulumi.infra.yaml")


def test_a_claimed_directory_is_alive_and_refuses_a_second_claim(tmp_path: Path) -> None:
    run = RunDirectory.of(tmp_path, "try")
    assert not run.alive()
    lock = run.claim()
    assert run.alive()
    with pytest.raises(LabError, match="running already"):
        RunDirectory.of(tmp_path, "try").claim()
    os.close(lock)
    assert not run.alive()


def test_a_claim_begins_with_an_empty_directory_that_is_private(run: RunDirectory) -> None:
    (run.root / "old").touch()
    os.close(run.claim())
    assert not (run.root / "old").exists()
    assert stat.S_IMODE(run.root.stat().st_mode) == 0o700
    assert known(run.root.parent.parent) == [run]


@pytest.mark.parametrize("name", ["", "..", "a/b", "Infra", "-x", "x" * 60])
def test_names_that_could_leave_the_folder_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(LabError, match="no name for a lab"):
        RunDirectory.of(tmp_path, name)


def test_private_files_replace_open_ones(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("old")
    path.chmod(0o644)
    write_private(path, "new")
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", 0o600)


def test_the_environment_is_made_from_nothing(
    run: RunDirectory, infra: StackFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("KUBECONFIG", "TALOSCONFIG", "HTTPS_PROXY", "PULUMI_ACCESS_TOKEN", "AWS_PROFILE"):
        monkeypatch.setenv(name, "ambient")
    credentials = Credentials.fresh()
    environment = program_environment(run, [infra], credentials)
    assert "ambient" not in environment.values()
    assert environment["PROXMOX_TOKEN"] == credentials.proxmox
    assert environment["GIT_TOKEN"] == credentials.git
    written_below = [environment[name] for name in ("HOME", "TMPDIR", "PULUMI_HOME")]
    assert all(Path(path).is_relative_to(run.root) for path in written_below)


def test_credentials_are_new_each_time_and_readable_by_their_owner_only(run: RunDirectory, infra: StackFile) -> None:
    credentials = Credentials.fresh()
    assert credentials != Credentials.fresh()
    environment = program_environment(run, [infra], credentials)
    write(run, environment, credentials)
    assert (read(run), read_credentials(run)) == (environment, credentials)
    private = ("environment.json", "credentials.json", "passphrase")
    assert {stat.S_IMODE((run.root / name).stat().st_mode) for name in private} == {0o600}


def test_the_hosts_file_has_the_labs_names_and_no_other() -> None:
    text = setting.hosts_file(["pve.example"], ["git.example", "charts.example", "git.example"])
    lines = [line.split() for line in text.splitlines() if not line.startswith("::1")]
    entries = {name: address for address, name in lines}
    assert entries == {
        "localhost": "127.0.0.1",
        "pve.example": setting.PROXMOX_ADDRESS,
        "git.example": setting.INTERNET_ADDRESS,
        "charts.example": setting.INTERNET_ADDRESS,
    }


def test_names_are_looked_up_nowhere_else(run: RunDirectory) -> None:
    setting.write_etc(run.etc)
    assert "nameserver" not in (run.etc / "resolv.conf").read_text()
    assert "hosts: files\n" in (run.etc / "nsswitch.conf").read_text()


def test_a_setting_is_read_as_it_was_written(run: RunDirectory) -> None:
    whole = setting.Setting(
        stacks=["a"], addresses=["10.0.0.1"], pace=0.5, user_namespace=False, faults=[{"name": "x"}]
    )
    whole.write(run.setting)
    assert setting.Setting.read(run.setting) == whole


def test_the_working_tree_is_copied_as_it_is_now(tmp_path: Path, run: RunDirectory) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for command in (["init", "--quiet"], ["config", "user.name", "x"], ["config", "user.email", "x@y"]):
        subprocess.run(["git", "-C", str(source), *command], check=True)
    for name, text in {".gitignore": "ignored\n", "kept": "old", "dropped": "x", "ignored": "x"}.items():
        (source / name).write_text(text)
    subprocess.run(["git", "-C", str(source), "add", "."], check=True)
    (source / "kept").write_text("new")
    (source / "dropped").unlink()
    (source / "fresh").write_text("untracked")
    copy_working_tree(source, run.project)
    copied = {path.name: path.read_text() for path in run.project.iterdir()}
    assert copied == {".gitignore": "ignored\n", "kept": "new", "fresh": "untracked"}


def test_a_directory_without_git_is_refused(tmp_path: Path, run: RunDirectory) -> None:
    with pytest.raises(LabError, match="no Git working tree"):
        copy_working_tree(tmp_path, run.project)


def test_the_staged_project_is_clean_and_published_where_the_stack_file_says(
    run: RunDirectory, infra: StackFile
) -> None:
    stage(PROJECT, run, [infra], "")
    bare = repository(run.git, infra.git_url)
    assert bare.relative_to(run.git) == Path("platform/groundwork.git")
    assert _git(run, "status", "--porcelain") == ""
    assert _git(run, "rev-parse", "HEAD") == _git(run, "--git-dir", str(bare), "rev-parse", infra.git_branch)
    assert _git(run, "remote", "get-url", "origin") == infra.git_url


def test_a_stack_file_of_ones_own_comes_instead_of_the_committed_ones(run: RunDirectory, tmp_path: Path) -> None:
    own = tmp_path / "Pulumi.own.yaml"
    own.write_text((PROJECT / "Pulumi.infra.yaml").read_text())
    stage(PROJECT, run, [StackFile.read(own)], "")
    assert [path.name for path in run.project.glob("Pulumi.*.yaml")] == ["Pulumi.own.yaml"]


def test_a_failing_git_says_what_it_was_asked(run: RunDirectory) -> None:
    run.project.mkdir()
    with pytest.raises(LabError, match="git frobnicate failed"):
        git(run, "frobnicate")


def _git(run: RunDirectory, *arguments: str) -> str:
    return subprocess.check_output(["git", "-C", str(run.project), *arguments], text=True).strip()
