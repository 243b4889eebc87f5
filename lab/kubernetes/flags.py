"""Command lines of the control plane's programs: Talos's defaults and a machine config's extra arguments, merged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.kubernetes.settings import ClusterSettings

Flags = dict[str, list[str]]

ADDED_UP = {"enable-admission-plugins", "feature-gates", "authorization-mode", "tls-cipher-suites", "controllers"}
"""Extra values of these are joined to Talos's own instead of taking their place."""

DENIED = {
    "authentication-kubeconfig",
    "authorization-config",
    "authorization-kubeconfig",
    "client-ca-file",
    "cluster-signing-cert-file",
    "cluster-signing-key-file",
    "config",
    "encryption-provider-config",
    "etcd-cafile",
    "etcd-certfile",
    "etcd-keyfile",
    "etcd-servers",
    "kubelet-client-certificate",
    "kubelet-client-key",
    "proxy-client-cert-file",
    "proxy-client-key-file",
    "requestheader-client-ca-file",
    "root-ca-file",
    "service-account-key-file",
    "service-account-private-key-file",
    "service-account-signing-key-file",
    "tls-cert-file",
    "tls-private-key-file",
}

PINNED = {"advertise-address", "bind-address", "etcd-servers", "kubeconfig", "leader-elect", "secure-port"}
"""Ours in the lab: one loopback stands for every machine."""


API_SERVER_FILES = {
    "admission-control-config-file": "admission-control.yaml",
    "audit-log-path": "audit.log",
    "audit-policy-file": "audit-policy.yaml",
    "client-ca-file": "ca.crt",
    "encryption-provider-config": "encryption.yaml",
    "etcd-cafile": "etcd-ca.crt",
    "etcd-certfile": "etcd-client.crt",
    "etcd-keyfile": "etcd-client.key",
    "kubelet-client-certificate": "kubelet-client.crt",
    "kubelet-client-key": "kubelet-client.key",
    "proxy-client-cert-file": "front-proxy-client.crt",
    "proxy-client-key-file": "front-proxy-client.key",
    "requestheader-client-ca-file": "aggregator-ca.crt",
    "service-account-key-file": "service-account.pub",
    "service-account-signing-key-file": "service-account.key",
    "tls-cert-file": "apiserver.crt",
    "tls-private-key-file": "apiserver.key",
}


class ArgumentDeniedError(Exception):
    """An extra argument that Talos refuses to have overridden."""


@dataclass(frozen=True, kw_only=True)
class Ports:
    etcd: int
    etcd_peer: int
    api: int
    manager: int
    scheduler: int


def merge(defaults: Mapping[str, Sequence[str]], extra: Mapping[str, Sequence[str]]) -> Flags:
    merged: Flags = {name: list(values) for name, values in defaults.items()}
    for name, values in extra.items():
        if name in DENIED:
            raise ArgumentDeniedError(f'extra arg "{name}" is not allowed to be overridden')
        if name in ADDED_UP and name in merged:
            merged[name] = [",".join([*merged[name], *values])]
        elif name not in PINNED:
            merged[name] = list(values)
    return merged


def command_line(flags: Mapping[str, Sequence[str]]) -> list[str]:
    return [f"--{name}={value}" for name in sorted(flags) for value in flags[name]]


def etcd(directory: Path, name: str, ports: Ports) -> list[str]:
    url, peer = f"https://127.0.0.1:{ports.etcd}", f"https://127.0.0.1:{ports.etcd_peer}"
    flags = {
        "name": name,
        "data-dir": str(directory / "etcd"),
        "listen-client-urls": url,
        "advertise-client-urls": url,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": f"{name}={peer}",
        "client-cert-auth": "true",
        "peer-client-cert-auth": "true",
        "unsafe-no-fsync": "true",
        "log-level": "warn",
    }
    for prefix in ("", "peer-"):
        flags[f"{prefix}cert-file"] = str(directory / "etcd-server.crt")
        flags[f"{prefix}key-file"] = str(directory / "etcd-server.key")
        flags[f"{prefix}trusted-ca-file"] = str(directory / "etcd-ca.crt")
    return command_line({name: [value] for name, value in flags.items()})


def api_server(directory: Path, settings: ClusterSettings, ports: Ports, advertised: str) -> list[str]:
    defaults: Flags = {
        **{name: [str(directory / file)] for name, file in API_SERVER_FILES.items()},
        "advertise-address": [advertised],
        "allow-privileged": ["true"],
        "anonymous-auth": ["false"],
        "api-audiences": [settings.endpoint],
        "authorization-mode": ["Node,RBAC"],
        "bind-address": ["127.0.0.1"],
        "enable-admission-plugins": ["NodeRestriction"],
        "enable-bootstrap-token-auth": ["true"],
        "etcd-servers": [f"https://127.0.0.1:{ports.etcd}"],
        "profiling": ["false"],
        "requestheader-allowed-names": ["front-proxy-client"],
        "requestheader-extra-headers-prefix": ["X-Remote-Extra-"],
        "requestheader-group-headers": ["X-Remote-Group"],
        "requestheader-username-headers": ["X-Remote-User"],
        "secure-port": [str(ports.api)],
        "service-account-issuer": [settings.endpoint],
        "service-cluster-ip-range": [",".join(settings.service_subnets)],
        "tls-min-version": ["VersionTLS12"],
    }
    return command_line(merge(defaults, settings.extra_args("apiServer")))


def controller_manager(directory: Path, settings: ClusterSettings, ports: Ports) -> list[str]:
    kubeconfig = [str(directory / "controller-manager.kubeconfig")]
    defaults: Flags = {
        "allocate-node-cidrs": ["true"],
        "authentication-kubeconfig": kubeconfig,
        "authorization-kubeconfig": kubeconfig,
        "bind-address": ["127.0.0.1"],
        "cluster-cidr": [",".join(settings.pod_subnets)],
        "cluster-signing-cert-file": [str(directory / "ca.crt")],
        "cluster-signing-key-file": [str(directory / "ca.key")],
        "configure-cloud-routes": ["false"],
        "controllers": ["*,tokencleaner"],
        # Its start alone asks for a hundred service accounts and tokens; the default makes it wait for seconds.
        "kube-api-burst": ["1000"],
        "kube-api-qps": ["500"],
        "kubeconfig": kubeconfig,
        "leader-elect": ["false"],
        "profiling": ["false"],
        "root-ca-file": [str(directory / "ca.crt")],
        "secure-port": [str(ports.manager)],
        "service-account-private-key-file": [str(directory / "service-account.key")],
        "service-cluster-ip-range": [",".join(settings.service_subnets)],
        "tls-min-version": ["VersionTLS13"],
        "use-service-account-credentials": ["true"],
    }
    return command_line(merge(defaults, settings.extra_args("controllerManager")))


def scheduler(directory: Path, settings: ClusterSettings, ports: Ports) -> list[str]:
    kubeconfig = [str(directory / "scheduler.kubeconfig")]
    defaults: Flags = {
        "authentication-kubeconfig": kubeconfig,
        "authorization-kubeconfig": kubeconfig,
        "bind-address": ["127.0.0.1"],
        "config": [str(directory / "scheduler-config.yaml")],
        "profiling": ["false"],
        "secure-port": [str(ports.scheduler)],
        "tls-min-version": ["VersionTLS13"],
    }
    return command_line(merge(defaults, settings.extra_args("scheduler")))
