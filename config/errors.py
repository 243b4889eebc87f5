"""A problem in a stack file, and the one exception that tells them all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pulumi


@dataclass(frozen=True, kw_only=True)
class Problem:
    """What is wrong at which path of the stack file, and what would put it right."""

    path: str
    message: str
    fix: str

    def __str__(self) -> str:
        return f"  {self.path}: {self.message}\n      fix: {self.fix}"


def refusal(stack_file: str, problems: Iterable[Problem]) -> pulumi.RunError:
    """RunError is printed by Pulumi without a traceback."""
    lines = list(dict.fromkeys(str(problem) for problem in problems))
    count = "1 problem" if len(lines) == 1 else f"{len(lines)} problems"
    return pulumi.RunError("\n".join([f"{stack_file} has {count}; nothing was changed.", *lines]))
