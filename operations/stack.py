"""One stack as its operator has it: its file, its secrets, its outputs, its state."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from config import ClusterConfig
from config.load import with_mesh_routing
from config.stack_files import cluster_data, peers
from config.structure import parse

PROJECT = "groundwork"
CLUSTER_KEY = f"{PROJECT}:cluster"
FROM_ENVIRONMENT = "env:"


class StackError(Exception):
    """Something about the stack that its operator has to put right first."""


@dataclass(frozen=True)
class Stack:
    name: str
    directory: Path = Path()
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)

    def cluster(self) -> ClusterConfig:
        """The cluster of its file; mistakes in it are the preview's to tell."""
        try:
            data = cluster_data(self.directory, self.name, CLUSTER_KEY)
        except (OSError, ValueError) as error:
            raise StackError(f"Pulumi.{self.name}.yaml cannot be read: {error}") from None
        if data is None:
            raise StackError(f"Pulumi.{self.name}.yaml describes no cluster; STACK=… names a stack file")
        parsed = parse(data)
        if parsed.problems:
            raise StackError(f"Pulumi.{self.name}.yaml has mistakes: pulumi preview -s {self.name} lists them")
        others, _ = peers(self.directory, self.name, CLUSTER_KEY)
        return with_mesh_routing(parsed.cluster, others)

    def secret(self, key: str) -> str:
        """A secret of its file in clear, from the environment where the file says so."""
        value = self.pulumi("config", "get", f"{PROJECT}:{key}").strip()
        if not value.startswith(FROM_ENVIRONMENT):
            return value
        variable = value.removeprefix(FROM_ENVIRONMENT)
        if not self.environment.get(variable):
            raise StackError(f"{key} is read from {variable}, which is not set: export {variable}=…")
        return self.environment[variable]

    def outputs(self) -> dict[str, Any]:
        """Everything the stack exports, secrets in clear; empty before the first finished `up`."""
        found: dict[str, Any] = json.loads(self.pulumi("stack", "output", "--json", "--show-secrets"))
        return found

    def state(self, *, show_secrets: bool = False) -> dict[str, Any]:
        """The engine's own record, in the form `put_state` takes; with secrets in clear it is for reading only."""
        shown = ["--show-secrets"] if show_secrets else []
        exported: dict[str, Any] = json.loads(self.pulumi("stack", "export", *shown))
        return exported

    def put_state(self, exported: dict[str, Any]) -> None:
        self.pulumi("stack", "import", given=json.dumps(exported))

    def pulumi(self, *arguments: str, given: str | None = None) -> str:
        """Run one command of the Pulumi CLI and return what it printed."""
        command = ["pulumi", *arguments, "--stack", self.name, "--non-interactive"]
        done = subprocess.run(command, cwd=self.directory, input=given, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise StackError(f"`{' '.join(command)}` failed:\n{done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def run(self, *arguments: str) -> int:
        """Run one command of the Pulumi CLI before the operator's eyes."""
        command = ["pulumi", *arguments, "--stack", self.name, "--non-interactive"]
        return subprocess.run(command, cwd=self.directory, check=False).returncode
