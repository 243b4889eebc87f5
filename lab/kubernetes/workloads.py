"""Which images stand for a real program of the toolchain, and how its command line is made fit for one shared host."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lab.kubernetes.api import Object

FLUX_OPERATOR_MODULE = "github.com/controlplaneio-fluxcd/flux-operator"


@dataclass(frozen=True, kw_only=True)
class Workload:
    program: str
    listeners: Mapping[str, int] = field(default_factory=dict)
    """The flags that name what it listens on, with the port a container has there."""
    port_flags: Mapping[str, int] = field(default_factory=dict)
    """The same for flags that take a bare port number."""
    addresses: Mapping[str, tuple[str, int, str]] = field(default_factory=dict)
    """Flags that name a listener of another workload: whose, which container port, and how it is written."""
    paths: Mapping[str, str] = field(default_factory=dict)
    """Flags for directories that the image brings: the name of the directory in the pod's own."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """What the vendor's build has switched on and ours has not."""
    outside: bool = False
    """Run as its developers run it on a host, with a kubeconfig: inside a cluster it insists on its vendor's image."""


MANAGER = {"--metrics-addr": 8080, "--health-addr": 9440}
EVENTS = {"--events-addr": ("notification-controller", 9090, "http://127.0.0.1:{port}/")}

WORKLOADS = {
    "operator-generic": Workload(
        program="cilium-operator",
        listeners={"--operator-api-serve-addr": 9234, "--operator-prometheus-serve-addr": 9963},
        port_flags={"--gops-port": 9891},
    ),
    "sealed-secrets-controller": Workload(
        program="sealed-secrets-controller",
        listeners={"--listen-addr": 8080, "--listen-metrics-addr": 8081},
    ),
    "flux-operator": Workload(
        program="flux-operator",
        listeners={"--metrics-addr": 8080, "--health-addr": 8081},
        port_flags={"--web-server-port": 9080},
        paths={"--storage-path": "data"},
        environment={"GODEBUG": "fips140=on"},
        outside=True,
    ),
    "source-controller": Workload(
        program="source-controller",
        listeners={**MANAGER, "--storage-addr": 9090},
        addresses={**EVENTS, "--storage-adv-addr": ("source-controller", 9090, "127.0.0.1:{port}")},
    ),
    "kustomize-controller": Workload(program="kustomize-controller", listeners=MANAGER, addresses=EVENTS),
    "helm-controller": Workload(program="helm-controller", listeners=MANAGER, addresses=EVENTS),
    "notification-controller": Workload(
        program="notification-controller",
        listeners={**MANAGER, "--events-addr": 9090, "--receiverAddr": 9292},
    ),
}
"""By the last part of the image's name."""

PortOf = Callable[[str, int], int]
"""The host's port for a workload's container port; the same one every time it is asked."""


def workload_of(pod: Object) -> tuple[Workload, Object] | None:
    """The program that a pod stands for, and the container that would run it."""
    for container in pod["spec"]["containers"]:
        if workload := WORKLOADS.get(image_name(container.get("image", ""))):
            return workload, container
    return None


def image_name(image: str) -> str:
    return image.split("@", maxsplit=1)[0].rpartition("/")[2].partition(":")[0]


def command_line(workload: Workload, arguments: Sequence[str], *, ports: PortOf, directory: Path) -> list[str]:
    """The container's own arguments, followed by ours: the last one given counts."""
    own = [f"{flag}=127.0.0.1:{ports(workload.program, port)}" for flag, port in workload.listeners.items()]
    own += [f"{flag}={ports(workload.program, port)}" for flag, port in workload.port_flags.items()]
    for flag, (other, port, form) in workload.addresses.items():
        own.append(f"{flag}={form.format(port=ports(other, port))}")
    own += [f"{flag}={directory / name}" for flag, name in workload.paths.items()]
    return [*arguments, *own]


def within_pod(program: Path, arguments: Sequence[str], mounted: Path) -> tuple[Path, list[str]]:
    """The same command with a mount namespace of its own, in which a pod's service account directory exists."""
    place = "/var/run/secrets/kubernetes.io"
    prepare = f'mount -t tmpfs lab /run && mkdir -p {place} && ln -s "$0" {place}/serviceaccount && exec "$@"'
    privileged = [] if os.geteuid() == 0 else ["--map-root-user"]
    unshare = [*privileged, "--mount", "sh", "-c", prepare, str(mounted), str(program), *arguments]
    return Path(shutil.which("unshare") or "unshare"), unshare


def moved(text: str, mounts: Mapping[str, Path]) -> str:
    """An argument with the container's mount paths replaced by where the lab has put them; the longest match counts."""
    for path in sorted(mounts, key=len, reverse=True):
        prefix, found, rest = text.partition(path)
        if found and (not rest or rest[0] in "/,") and (not prefix or prefix[-1] in "=,:"):
            return f"{prefix}{mounts[path]}{rest}"
    return text


def mounts(container: Object, volumes: Mapping[str, Path]) -> dict[str, Path]:
    listed = container.get("volumeMounts") or []
    return {mount["mountPath"].rstrip("/"): volumes[mount["name"]] for mount in listed if mount["name"] in volumes}


def probe(container: Object, workload: Workload, ports: PortOf) -> str | None:
    """Where the readiness probe is to be sent on this host; None where it asks nothing over HTTP."""
    check = (container.get("readinessProbe") or {}).get("httpGet")
    if not check:
        return None
    port = _container_port(container, check["port"])
    known = {*workload.listeners.values(), *workload.port_flags.values()}
    if port not in known:
        raise LookupError(f"{workload.program}: its readiness probe asks port {port}, which no flag moves")
    return f"http://127.0.0.1:{ports(workload.program, port)}{check.get('path') or '/'}"


def _container_port(container: Object, port: int | str) -> int:
    if isinstance(port, int):
        return port
    return next(int(item["containerPort"]) for item in container.get("ports") or [] if item.get("name") == port)
