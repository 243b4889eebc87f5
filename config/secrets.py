"""The secrets that stand beside the cluster in the stack file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields

import pulumi
from pulumi.runtime import is_config_secret

from .errors import Problem
from .model import ClusterConfig

PROXMOX_TOKEN = (re.compile(r"^\S+@\S+!\S+=[a-zA-Z0-9-]+$"), "a Proxmox API token of the form user@realm!name=value")
CERTIFICATE = r"-----BEGIN CERTIFICATE-----"
PRIVATE_KEY = r"-----BEGIN [A-Z ]*PRIVATE KEY-----"
SHAPES = {
    "proxmoxToken": PROXMOX_TOKEN,
    "proxmoxAdminToken": PROXMOX_TOKEN,
    "csiToken": PROXMOX_TOKEN,
    "pullSecret": (re.compile(r'^\s*\{.*"auths"', re.DOTALL), "a .dockerconfigjson with auths"),
    "sealingCertificate": (re.compile(CERTIFICATE), "a PEM certificate"),
    "sealingKey": (re.compile(PRIVATE_KEY), "a PEM private key"),
    "ciliumCa": (re.compile(f"{CERTIFICATE}.*{PRIVATE_KEY}", re.DOTALL), "a PEM certificate followed by its key"),
}


@dataclass(frozen=True, kw_only=True)
class Secrets:
    """Every value is a secret output; what the stack file does not name is None."""

    proxmox_token: pulumi.Output[str]
    proxmox_admin_token: pulumi.Output[str] | None = None
    csi_token: pulumi.Output[str] | None = None
    git_token: pulumi.Output[str] | None = None
    pull_secret: pulumi.Output[str] | None = None
    """A .dockerconfigjson."""
    sealing_certificate: pulumi.Output[str] | None = None
    sealing_key: pulumi.Output[str] | None = None
    cilium_ca: pulumi.Output[str] | None = None
    """Certificate and key, both PEM, one after the other."""


def key_of(field: str) -> str:
    """The stack file spells proxmox_token as proxmoxToken."""
    head, *rest = field.split("_")
    return head + "".join(part.capitalize() for part in rest)


KEYS = {key_of(field.name): field.name for field in fields(Secrets)}


@dataclass(frozen=True, kw_only=True)
class Read:
    """Secret values in clear, by key of the stack file, and what was wrong with them; never printed."""

    values: Mapping[str, str]
    problems: list[Problem]

    def seal(self) -> Secrets:
        return Secrets(**{KEYS[key]: pulumi.Output.secret(value) for key, value in self.values.items()})


def read(config: pulumi.Config) -> Read:
    values: dict[str, str] = {}
    problems: list[Problem] = []
    for key in KEYS:
        value = _resolve(config, key)
        if isinstance(value, Problem):
            problems.append(value)
        elif value is not None:
            values[key] = value
    return Read(values=values, problems=problems)


def _resolve(config: pulumi.Config, key: str) -> str | Problem | None:
    value = config.get(key)
    if value is None:
        return None
    if is_config_secret(config.full_key(key)):
        return value
    if not value.startswith("env:"):
        return Problem(
            path=key,
            message="is plain text in the stack file",
            fix=f"revoke it, then `pulumi config set --secret {key}`, or write env:NAME to read the environment",
        )
    variable = value.removeprefix("env:")
    if not os.environ.get(variable):
        return Problem(
            path=key, message=f"is read from {variable}, which is not set", fix=f"export {variable}=… before pulumi"
        )
    return os.environ[variable]


def check(read: Read, cluster: ClusterConfig) -> Iterator[Problem]:
    """What this cluster needs, and the shape of what is there; the values are never repeated."""
    said = {problem.path for problem in read.problems}
    for key, why in _needed(cluster):
        if key not in read.values and key not in said:
            yield Problem(path=key, message=f"is missing: {why}", fix=f"pulumi config set --secret {key}")


def check_shape(read: Read) -> Iterator[Problem]:
    for key, (pattern, shape) in SHAPES.items():
        if key in read.values and not pattern.search(read.values[key]):
            yield Problem(path=key, message=f"is not {shape}", fix=f"set it again: pulumi config set --secret {key}")
    for key, other in (("sealingKey", "sealingCertificate"), ("sealingCertificate", "sealingKey")):
        if key in read.values and other not in read.values:
            yield Problem(path=other, message=f"is missing although {key} is given", fix="give both, or neither")


def _needed(cluster: ClusterConfig) -> Iterator[tuple[str, str]]:
    yield "proxmoxToken", "nothing can be created without a token for the Proxmox API"
    if cluster.proxmox.create_csi_credentials:
        yield "proxmoxAdminToken", "proxmox.create_csi_credentials is true, and creating users takes a token of its own"
    elif cluster.storage.csi:
        yield "csiToken", "storage.csi is given, and the driver speaks to Proxmox with a token of its own"
    if cluster.sealing.publish == "push":
        yield "gitToken", "sealing.publish is push"
    if cluster.mesh.enabled:
        yield "ciliumCa", "mesh.enabled is true, and meshed clusters share one authority"
    if any(namespace.pull_secret for namespace in cluster.namespaces.values()):
        yield "pullSecret", "a namespace has pull_secret: true"
