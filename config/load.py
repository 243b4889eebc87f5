"""The only reader of pulumi.Config: one stack file in, typed settings or every problem at once out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pulumi
from pulumi.runtime import get_config_env, is_config_secret
from pulumi.runtime.config import CONFIG

from . import mesh, rules, secrets, stack_files, structure, surroundings
from .errors import Problem, nearest, refusal
from .leaks import OUTSIDE, leaks
from .mesh import Peers
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
    """The clusters of the project's other stack files, by stack."""


def load(directory: Path = PROJECT) -> Settings:
    """Raises RunError with every problem; registers nothing."""
    config = pulumi.Config()
    data, found = _data(config, directory)
    parsed = structure.parse(data)
    others, unreadable = stack_files.peers(directory, pulumi.get_stack(), config.full_key("cluster"))
    read = secrets.read(config)
    problems = [
        *surroundings.check(),
        *_unknown_keys(config),
        *found,
        *_unless_leaked([*parsed.problems, *rules.check(parsed, others)], found),
        *unreadable,
        *read.problems,
        *secrets.check_shape(read),
        *rules.readable(secrets.check(read, parsed.cluster), parsed.cluster),
    ]
    errors = [problem for problem in problems if not problem.warning]
    if errors:
        raise refusal(pulumi.get_stack(), errors)
    cluster = with_mesh_routing(parsed.cluster, others)
    return Settings(
        cluster=cluster,
        secrets=read.seal(),
        digest=cluster.digest,
        warnings=[str(problem) for problem in problems],
        peers=others,
    )


def with_mesh_routing(cluster: ClusterConfig, others: Peers) -> ClusterConfig:
    """Fills in what only the project as a whole knows: the network around all meshed pods."""
    if cluster.cilium.native_routing_cidr:
        return cluster
    cilium = cluster.cilium.model_copy(update={"native_routing_cidr": mesh.mesh_network(cluster, others)})
    return cluster.model_copy(update={"cilium": cilium})


def _data(config: pulumi.Config, directory: Path) -> tuple[Any, list[Problem]]:
    text = config.get("cluster")
    if text is None:
        fix = "describe one, as Pulumi.infra.yaml does"
        return None, [Problem(path="cluster", message="the stack file describes no cluster", fix=fix)]
    try:
        data = json.loads(text)
    except ValueError:
        return None, [Problem(path="cluster", message="is not an object", fix="write a mapping under cluster:")]
    return data, [*leaks(data), *_encrypted(config, directory)]


def _encrypted(config: pulumi.Config, directory: Path) -> Iterator[Problem]:
    """Pulumi has decrypted `secure:` values by now and says only that there were some; the file says where."""
    key = config.full_key("cluster")
    if is_config_secret(key):
        message = "something in it is encrypted (secure:), and would be decrypted into the state in clear"
        somewhere = Problem(path="cluster", message=message, fix=OUTSIDE)
        yield from list(leaks(stack_files.cluster_data(directory, pulumi.get_stack(), key))) or [somewhere]


def _unless_leaked(problems: list[Problem], leaked: list[Problem]) -> Iterator[Problem]:
    """What holds a secret is reported once: other messages about it, or about what it stands in, show values."""
    for problem in problems:
        if not any(_holds(problem.path, leak.path) for leak in leaked):
            yield problem


def _holds(path: str, other: str) -> bool:
    return other == path or other.startswith((f"{path}.", f"{path}["))


def _unknown_keys(config: pulumi.Config) -> Iterator[Problem]:
    known = ["cluster", *secrets.KEYS]
    prefix = config.full_key("")
    for key in CONFIG.get() or get_config_env():
        name = key.removeprefix(prefix)
        if key.startswith(prefix) and name not in known:
            yield Problem(path=name, message="unknown key", fix=nearest(name, known, "remove it"))
