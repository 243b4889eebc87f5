"""The copy of the project that a rehearsal runs: the working tree as it is, with the lab's Git host as its origin."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from lab.run_directory import LabError, RunDirectory
from lab.stackfile import StackFile, for_lab

GIT_CONFIG = "[user]\n\tname = groundwork lab\n\temail = lab@groundwork.invalid\n[advice]\n\tdetachedHead = false\n"


def stage(source: Path, run: RunDirectory, stacks: Sequence[StackFile], authority: str) -> None:
    """`authority` is the certificate that the lab's own servers can be checked with."""
    (run.home / ".gitconfig").write_text(GIT_CONFIG, encoding="utf-8")
    copy_working_tree(source, run.project)
    if any(file.path.resolve().parent != source for file in stacks):
        drop_examples(run.project)
    for file in stacks:
        text = for_lab(file.path.read_text(encoding="utf-8"), file, authority)
        staged_stack_file(run, file).write_text(text, encoding="utf-8")
    (run.project / ".venv").symlink_to(sys.prefix)
    commit(run, stacks[0].git_branch)
    for url, branch in {file.git_url: file.git_branch for file in stacks}.items():
        publish(run, url, branch)
    git(run, "remote", "add", "origin", stacks[0].git_url)


def drop_examples(project: Path) -> None:
    """A stack file of one's own comes instead of the committed ones, with which it may well collide."""
    for path in project.glob("Pulumi.*.yaml"):
        path.unlink()


def staged_stack_file(run: RunDirectory, file: StackFile) -> Path:
    return run.project / f"Pulumi.{file.stack}.yaml"


def copy_working_tree(source: Path, target: Path) -> None:
    """Tracked files and new ones that are not ignored, with what is in them now."""
    listed = subprocess.run(
        ["git", "-C", str(source), "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode != 0:
        raise LabError(f"{source} is no Git working tree: the lab rehearses a clone of the project")
    for name in filter(None, listed.stdout.split("\0")):
        if (source / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source / name, target / name)


def commit(run: RunDirectory, branch: str) -> None:
    git(run, "init", "--quiet", "--initial-branch", branch)
    (run.project / ".git/info/exclude").write_text("/.venv\n__pycache__/\n", encoding="utf-8")
    git(run, "add", "--all")
    git(run, "commit", "--quiet", "--message", "The working tree as rehearsed")


def publish(run: RunDirectory, url: str, branch: str) -> None:
    """Put the commit where the lab's Git host will serve this URL from."""
    bare = repository(run.git, url)
    bare.mkdir(parents=True)
    git(run, "init", "--quiet", "--bare", "--initial-branch", branch, str(bare))
    git(run, "push", "--quiet", str(bare), f"HEAD:refs/heads/{branch}")


def repository(git_root: Path, url: str) -> Path:
    return git_root / urlsplit(url).path.strip("/")


def git(run: RunDirectory, *arguments: str) -> None:
    environment = {"HOME": str(run.home), "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ.get("PATH", os.defpath)}
    done = subprocess.run(
        ["git", *arguments], cwd=run.project, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise LabError(f"git {' '.join(arguments)} failed: {done.stderr.strip()}")
