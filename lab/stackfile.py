"""What the lab reads of a stack file: addresses, names and places, as plain YAML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

SECRET_KEYS = ("proxmoxToken", "proxmoxAdminToken", "csiToken", "gitToken")
"""Secrets of services the lab stands in for."""
SECRETS_PROVIDER = {"encryptionsalt", "secretsprovider", "encryptedkey"}
"""What ties a file to the passphrase or key it was initialised with; the lab's stack has its own."""
LARGEST_POOL = 1024


class StackFileError(Exception):
    """The file is no stack file the lab can stage."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a URL leads."""

    host: str
    port: int

    @classmethod
    def of(cls, url: str) -> Place:
        parts = urlsplit(url)
        if not parts.hostname:
            raise StackFileError(f"{url!r} is no URL with a host")
        return cls(host=parts.hostname, port=parts.port or {"http": 80}.get(parts.scheme, 443))

    @property
    def address(self) -> str | None:
        """The host, when it is an address and no name."""
        try:
            return str(IPv4Address(self.host))
        except ValueError:
            return None


@dataclass(frozen=True, kw_only=True)
class StackFile:
    stack: str
    path: Path
    project: str
    """The namespace of its keys, `groundwork` in `groundwork:cluster`."""
    cluster: Mapping[str, Any]
    secrets: Mapping[str, str]
    """Environment variable by secret key, for each secret that is read from the environment."""
    sealed: tuple[str, ...] = ()
    """Secret keys encrypted with a passphrase the lab does not have."""

    @classmethod
    def read(cls, path: Path) -> StackFile:
        config = _config(path)
        key = next((key for key in config if key.endswith(":cluster")), None)
        if key is None or not isinstance(config[key], dict):
            raise StackFileError(f"{path} has no `<project>:cluster` object under `config`")
        project = key.removesuffix(":cluster")
        references = {name: config.get(f"{project}:{name}") for name in SECRET_KEYS}
        return cls(
            stack=_stack_name(path, config[key]),
            path=path,
            project=project,
            cluster=config[key],
            secrets={
                name: str(value).removeprefix("env:")
                for name, value in references.items()
                if str(value).startswith("env:")
            },
            sealed=tuple(name for name, value in references.items() if isinstance(value, dict)),
        )

    @property
    def proxmox(self) -> Place:
        return Place.of(str(self._at("proxmox", "endpoint")))

    @property
    def hosts(self) -> list[str]:
        return list(self._at("proxmox", "hosts"))

    @property
    def nodes(self) -> Mapping[str, Mapping[str, Any]]:
        nodes: Mapping[str, Mapping[str, Any]] = self._at("nodes")
        return nodes

    @property
    def git_url(self) -> str:
        return str(self._at("flux", "url"))

    @property
    def git_branch(self) -> str:
        return str(self._at("flux", "branch"))

    def addresses(self) -> list[str]:
        """Every address the file names and something of the lab must answer at, each once."""
        return list(dict.fromkeys(self._addresses()))

    def _addresses(self) -> Iterator[str]:
        yield from (str(node["address"]).partition("/")[0] for node in self.nodes.values())
        if vip := self._at("network").get("vip"):
            yield str(vip)
        for place in (self.proxmox, Place.of(self.git_url)):
            if place.address:
                yield place.address
        for pool in (self.cluster.get("lb_pools") or {}).values():
            yield from pool_addresses(pool)
        yield from map(str, (self.cluster.get("lb_addresses") or {}).values())

    def _at(self, *keys: str) -> Any:
        value: Any = self.cluster
        for depth, key in enumerate(keys, start=1):
            if not isinstance(value, Mapping) or key not in value:
                raise StackFileError(f"{self.path} has no `{'.'.join(keys[:depth])}` in its cluster")
            value = value[key]
        return value


def pool_addresses(pool: Mapping[str, Any]) -> list[str]:
    """The addresses of one load-balancer pool, given as `range: a-b` or `cidr: a/n`."""
    if "cidr" in pool:
        network = IPv4Network(pool["cidr"])
        first, last = network[0], network[-1]
    else:
        low, _, high = str(pool["range"]).partition("-")
        first, last = IPv4Address(low.strip()), IPv4Address((high or low).strip())
    if int(last) - int(first) >= LARGEST_POOL:
        raise StackFileError(f"the pool {first}-{last} has more than {LARGEST_POOL} addresses")
    return [str(IPv4Address(number)) for number in range(int(first), int(last) + 1)]


def for_lab(text: str, file: StackFile, authority: str) -> str:
    """The stack file as the lab stages it: unchanged, unless it holds what only the real site can honour."""
    document = yaml.safe_load(text)
    if not file.sealed and not file.cluster["proxmox"].get("ca") and not document.keys() & SECRETS_PROVIDER:
        return text
    for key in file.sealed:
        document["config"][f"{file.project}:{key}"] = f"env:{environment_name(key)}"
    for key in SECRETS_PROVIDER:
        document.pop(key, None)
    proxmox = document["config"][f"{file.project}:cluster"]["proxmox"]
    if proxmox.get("ca"):
        proxmox["ca"] = authority
    return yaml.safe_dump(document, sort_keys=False)


def environment_name(key: str) -> str:
    """LAB_PROXMOX_TOKEN for proxmoxToken."""
    return "LAB_" + re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key).upper()


def _config(path: Path) -> dict[str, Any]:
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise StackFileError(f"{path} cannot be read: {error}") from error
    config = document.get("config") if isinstance(document, dict) else None
    if not isinstance(config, dict):
        raise StackFileError(f"{path} has no `config`")
    return config


def _stack_name(path: Path, cluster: Mapping[str, Any]) -> str:
    named = re.fullmatch(r"Pulumi\.([A-Za-z0-9_-]+)\.ya?ml", path.name)
    return named.group(1) if named else str(cluster.get("name", path.stem))
