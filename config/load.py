"""The only reader of pulumi.Config: one stack file in, typed settings or every problem at once out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pulumi

from . import secrets
from .errors import refusal
from .model import ClusterConfig
from .secrets import Secrets

PROJECT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, kw_only=True)
class Settings:
    cluster: ClusterConfig
    secrets: Secrets
    digest: str
    """Of the cluster's whole desired state: the trigger of every gate."""
    warnings: list[str]
    peers: dict[str, ClusterConfig]
    """The other stack files of the project, by stack."""


def load(directory: Path = PROJECT) -> Settings:
    config = pulumi.Config()
    cluster = ClusterConfig.model_validate(config.require_object("cluster"))
    read = secrets.read(config)
    problems = [*read.problems, *secrets.check(read, cluster)]
    if problems:
        raise refusal(f"Pulumi.{pulumi.get_stack()}.yaml", problems)
    return Settings(cluster=cluster, secrets=read.seal(), digest=cluster.digest, warnings=[], peers={})
