"""A problem in a stack file, and the one exception that tells them all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

import pulumi


@dataclass(frozen=True, kw_only=True)
class Problem:
    """What is wrong at which path of the stack file, and what would put it right."""

    path: str
    message: str
    fix: str
    warning: bool = False
    """Worth saying, no reason to stop."""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}\n      fix: {self.fix}"


def stack_file(stack: str) -> str:
    return f"Pulumi.{stack}.yaml"


def refusal(stack: str, problems: Iterable[Problem]) -> pulumi.RunError:
    """RunError is printed by Pulumi without a traceback."""
    lines = list(dict.fromkeys(f"  {problem}" for problem in problems))
    count = "1 problem" if len(lines) == 1 else f"{len(lines)} problems"
    return pulumi.RunError("\n".join([f"{stack_file(stack)} has {count}; nothing was changed.", *lines]))


def nearest(word: str, known: Iterable[str], otherwise: str) -> str:
    """A did-you-mean, or what to do when nothing is near."""
    close = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"did you mean {close[0]}?" if close else otherwise
