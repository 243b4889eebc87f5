"""The lab's Git host, asked by the real Git client over TLS."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lab.authority import Authority
from lab.faults import Fault, Faults
from lab.internet import Internet
from lab.request_log import RequestLog

TOKEN = "s3cret-token"


class Git:
    """Git with the lab's authority and one password; nothing of the user's own configuration."""

    def __init__(self, directory: Path, authority: Authority, port: int) -> None:
        self.directory = directory
        self.base = f"https://lab@git.home.arpa:{port}"
        askpass = directory / "askpass"
        askpass.write_text('#!/bin/sh\necho "$LAB_PASSWORD"\n', encoding="utf-8")
        askpass.chmod(0o700)
        settings = {
            "http.sslCAInfo": str(authority.certificate),
            "http.curloptResolve": f"git.home.arpa:{port}:127.0.0.1",
            "user.name": "lab",
            "user.email": "lab@home.arpa",
        }
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(directory),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": str(askpass),
            "GIT_CONFIG_COUNT": str(len(settings)),
        }
        for number, (key, value) in enumerate(settings.items()):
            self.environment |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}

    async def run(self, *arguments: str, password: str = TOKEN) -> tuple[int, str]:
        process = await asyncio.create_subprocess_exec(
            "git",
            *arguments,
            cwd=self.directory,
            env={**self.environment, "LAB_PASSWORD": password},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        assert process.returncode is not None
        return process.returncode, output.decode()


@pytest.fixture
def faults() -> Faults:
    return Faults()


@pytest.fixture
def log(tmp_path: Path) -> RequestLog:
    return RequestLog(tmp_path / "requests.jsonl")


@pytest.fixture
async def git(tmp_path: Path, faults: Faults, log: RequestLog) -> AsyncIterator[Git]:
    def no_modules(module: str, version: str) -> Path:
        raise LookupError(f"{module} {version}")

    authority = Authority(tmp_path / "ca")
    internet = Internet(
        cluster={
            "versions": {"talos": "1.13.9", "flux_operator": "0.58.1"},
            "flux": {"url": "https://git.home.arpa/platform/groundwork.git", "branch": "main"},
        },
        git_root=tmp_path / "git",
        git_token=TOKEN,
        state=tmp_path / "state",
        modules=no_modules,
        log=log,
        authority=authority,
        faults=faults,
    )
    serving = asyncio.create_task(internet.serve("127.0.0.1", 0))
    await internet.ready.wait()
    assert internet.port
    work = tmp_path / "work"
    work.mkdir()
    yield Git(work, authority, internet.port)
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving


async def publish(git: Git, content: str) -> tuple[int, str]:
    """A clone, one commit, and its push."""
    repository = f"{git.base}/platform/groundwork.git"
    code, output = await git.run("clone", "--quiet", repository, "first")
    if code:
        return code, output
    (git.directory / "first/file").write_text(content, encoding="utf-8")
    await git.run("-C", "first", "add", "file")
    await git.run("-C", "first", "commit", "--quiet", "-m", "why not")
    return await git.run("-C", "first", "push", "--quiet", "origin", "HEAD:main")


async def test_what_is_pushed_can_be_cloned(git: Git, log: RequestLog) -> None:
    assert await publish(git, "x" * 3_000_000) == (0, "")
    code, output = await git.run("clone", "--quiet", f"{git.base}/platform/groundwork.git", "second")
    assert (code, output) == (0, "")
    assert (git.directory / "second/file").read_text(encoding="utf-8") == "x" * 3_000_000
    written = {entry["path"] for entry in log.entries() if entry["write"]}
    assert written == {"git.home.arpa/platform/groundwork.git/git-receive-pack"}
    assert TOKEN not in log.path.read_text(encoding="utf-8")


async def test_a_wrong_token_is_refused(git: Git, log: RequestLog) -> None:
    code, output = await git.run("ls-remote", f"{git.base}/platform/groundwork.git", password="wrong")
    assert code != 0
    assert "Authentication failed" in output
    assert {entry["status"] for entry in log.entries()} == {401}


async def test_an_unknown_repository_is_not_found(git: Git) -> None:
    code, output = await git.run("ls-remote", f"{git.base}/platform/other.git")
    assert code != 0
    assert "not found" in output


async def test_a_path_out_of_the_root_is_no_repository(git: Git, tmp_path: Path) -> None:
    await git.run("init", "--quiet", "--bare", str(tmp_path / "outside.git"))
    code, output = await git.run("ls-remote", f"{git.base}/platform/%2e%2e/%2e%2e/outside.git")
    assert code != 0
    assert "not found" in output


@pytest.mark.parametrize(
    ("fault", "words"), [("git-unreachable", "503"), ("git-bad-credentials", "Authentication failed")]
)
async def test_faults_strike_and_pass(git: Git, faults: Faults, fault: str, words: str) -> None:
    faults.add(Fault(name=fault))
    code, output = await git.run("ls-remote", f"{git.base}/platform/groundwork.git")
    assert code != 0
    assert words in output
    faults.remove(fault)
    assert (await git.run("ls-remote", f"{git.base}/platform/groundwork.git"))[0] == 0
