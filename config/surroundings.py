"""What the program needs around it: an engine that is new enough, and git."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pulumi

from .errors import Problem

ENGINE = ">=3.220.0"


def check() -> Iterator[Problem]:
    yield from _engine()
    yield from _git()


def _engine() -> Iterator[Problem]:
    try:
        pulumi.require_pulumi_version(ENGINE)
    except AttributeError:
        return  # the SDK's mock engine has no version to ask for
    except Exception as error:  # the SDK raises nothing narrower
        yield Problem(
            path="pulumi",
            message=f"this engine is not supported: {error}",
            fix=f"install Pulumi {ENGINE}: https://www.pulumi.com/docs/install",
        )


def _git() -> Iterator[Problem]:
    if shutil.which("git") is None:
        yield Problem(
            path="git",
            message="is not on the PATH; sealed files are published and looked up with it",
            fix="install git",
        )
