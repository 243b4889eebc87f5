"""Rules on which releases go together."""

from __future__ import annotations

from collections.abc import Iterator

from .errors import Problem
from .model import ClusterConfig, Versions

TALOS = ((1, 13, 8), (1, 14, 0))
"""From the first release without the kubelet mount race, up to and without the next configuration format."""

KUBERNETES = {(1, 13): ((1, 31), (1, 36))}
"""Talos minor to the Kubernetes minors it supports, both included."""

GATEWAY_API = {(1, 20): ((1, 6, 1), (1, 7, 0)), (1, 19): ((1, 4, 1), (1, 5, 0))}
"""Cilium minor to the Gateway API releases it works with: from the first, up to and without the second."""


def numbers(version: str) -> tuple[int, int, int]:
    major, minor, patch = (int(part) for part in version.split("."))
    return major, minor, patch


def minor(version: str) -> tuple[int, int]:
    return numbers(version)[:2]


def spell(parts: tuple[int, ...]) -> str:
    return ".".join(str(part) for part in parts)


def talos_is_supported(cluster: ClusterConfig) -> Iterator[Problem]:
    least, beyond = TALOS
    version = cluster.versions.talos
    if not least <= numbers(version) < beyond:
        yield Problem(
            path="cluster.versions.talos",
            message=f"Talos {version} is outside >={spell(least)} <{spell(beyond)}; "
            "before it kubelets hang on mounts, after it the configuration format differs",
            fix=f"write {Versions().talos}",
        )


def contract_is_not_ahead(cluster: ClusterConfig) -> Iterator[Problem]:
    contract, talos = cluster.versions.talos_contract, cluster.versions.talos
    if minor(contract) > minor(talos):
        yield Problem(
            path="cluster.versions.talos_contract",
            message=f"the configuration format of Talos {contract} is newer than the Talos {talos} that has to read it",
            fix=f"write {talos}, or the release the cluster was created with",
        )


def kubernetes_is_supported(cluster: ClusterConfig) -> Iterator[Problem]:
    talos, kubernetes = cluster.versions.talos, cluster.versions.kubernetes
    supported = KUBERNETES.get(minor(talos))
    if supported and not supported[0] <= minor(kubernetes) <= supported[1]:
        yield Problem(
            path="cluster.versions.kubernetes",
            message=f"Kubernetes {kubernetes} is not supported by Talos {talos}",
            fix=f"choose from {spell(supported[0])} to {spell(supported[1])}",
        )


def gateway_api_fits_cilium(cluster: ClusterConfig) -> Iterator[Problem]:
    if not cluster.cilium.gateway_api:
        return
    cilium, gateway_api = cluster.versions.cilium, cluster.versions.gateway_api
    pair = GATEWAY_API.get(minor(cilium))
    if pair is None or not pair[0] <= numbers(gateway_api) < pair[1]:
        known = "; ".join(f"Cilium {spell(c)} with Gateway API {spell(g[0])}" for c, g in GATEWAY_API.items())
        yield Problem(
            path="cluster.versions.gateway_api",
            message=f"Cilium {cilium} and Gateway API {gateway_api} are not a known pair",
            fix=f"{known}; or set cilium.gateway_api: false",
        )
