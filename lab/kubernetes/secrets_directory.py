"""The files a control plane's programs are started with, written from a machine config."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from lab.kubernetes.pki import Pair, load_key, public_pem, write_private
from lab.kubernetes.settings import ClusterSettings

AUDIT_POLICY = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]}
"""What Talos uses when the machine config names no policy of its own."""


class SecretsDirectory:
    """Readable by the owner alone; nothing in it is ever logged or put on a command line."""

    def __init__(self, path: Path, settings: ClusterSettings, api_port: int) -> None:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path = path
        self._settings = settings
        self._server = f"https://127.0.0.1:{api_port}"

    def write(self) -> None:
        self._authorities()
        self._clients()
        self._configuration()
        self.name_api_server(self._settings.alternative_names())

    def name_api_server(self, names: Sequence[str]) -> None:
        """A serving certificate for these names, with the key it had: the API server reloads the file by itself."""
        key_file = self.path / "apiserver.key"
        key = load_key(key_file.read_bytes()) if key_file.exists() else None
        pair = self._settings.ca.server("kube-apiserver", names, key=key)
        if key is None:
            write_private(key_file, pair.key)
        write_private(self.path / "apiserver.crt", pair.certificate)

    def kubeconfig(self, user: str, pair: Pair, server: str, *, cluster: str) -> str:
        certificate, key = _base64(pair.certificate), _base64(pair.key)
        return kubeconfig(
            cluster=cluster,
            user=user,
            server=server,
            ca=self._settings.ca.certificate,
            credentials={"client-certificate-data": certificate, "client-key-data": key},
        )

    def _authorities(self) -> None:
        settings = self._settings
        authorities = {"ca": settings.ca, "aggregator-ca": settings.aggregator, "etcd-ca": settings.etcd}
        for stem, authority in authorities.items():
            write_private(self.path / f"{stem}.crt", authority.certificate)
        write_private(self.path / "ca.key", settings.ca.key)
        write_private(self.path / "service-account.key", settings.service_account)
        write_private(self.path / "service-account.pub", public_pem(settings.service_account))

    def _clients(self) -> None:
        settings = self._settings
        settings.etcd.server("etcd", ["localhost", "127.0.0.1"]).write(self.path, "etcd-server")
        settings.etcd.client("kube-apiserver").write(self.path, "etcd-client")
        settings.aggregator.client("front-proxy-client").write(self.path, "front-proxy-client")
        settings.ca.client("apiserver-kubelet-client", ["system:masters"]).write(self.path, "kubelet-client")
        settings.ca.client("lab:kubelets", ["system:masters"]).write(self.path, "lab")
        for component in ("controller-manager", "scheduler"):
            user = f"system:kube-{component}"
            text = self.kubeconfig(user, settings.ca.client(user, [user]), self._server, cluster="kubernetes")
            write_private(self.path / f"{component}.kubeconfig", text.encode())

    def _configuration(self) -> None:
        settings = self._settings
        server, scheduler = settings.component("apiServer"), settings.component("scheduler")
        self._yaml("encryption.yaml", encryption(settings))
        self._yaml("admission-control.yaml", admission(server.get("admissionControl") or []))
        self._yaml("audit-policy.yaml", server.get("auditPolicy") or AUDIT_POLICY)
        self._yaml("scheduler-config.yaml", scheduler_configuration(scheduler.get("config") or {}, self.path))

    def _yaml(self, name: str, document: Any) -> None:
        write_private(self.path / name, yaml.safe_dump(document).encode())


def encryption(settings: ClusterSettings) -> dict[str, Any]:
    """Providers in the order in which Talos lists them, and with its key names: stored data depends on both."""
    providers: list[dict[str, Any]] = []
    if settings.secretbox:
        providers.append({"secretbox": {"keys": [{"name": "key2", "secret": settings.secretbox}]}})
    if settings.aescbc:
        providers.append({"aescbc": {"keys": [{"name": "key1", "secret": settings.aescbc}]}})
    resources = [{"resources": ["secrets"], "providers": [*providers, {"identity": {}}]}]
    return {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration", "resources": resources}


def admission(plugins: Sequence[dict[str, Any]]) -> dict[str, Any]:
    entries = [{"name": plugin["name"], "configuration": plugin["configuration"]} for plugin in plugins]
    return {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": entries}


def scheduler_configuration(given: dict[str, Any], directory: Path) -> dict[str, Any]:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        **given,
        "clientConnection": {"kubeconfig": str(directory / "scheduler.kubeconfig"), "qps": 500, "burst": 1000},
        "leaderElection": {"leaderElect": False},
    }


def kubeconfig(*, cluster: str, user: str, server: str, ca: bytes, credentials: dict[str, str]) -> str:
    context = user if "@" in user else f"{user}@{cluster}"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster, "cluster": {"server": server, "certificate-authority-data": _base64(ca)}}],
        "users": [{"name": user, "user": credentials}],
        "contexts": [{"name": context, "context": {"cluster": cluster, "namespace": "default", "user": user}}],
        "current-context": context,
    }
    return yaml.safe_dump(document, sort_keys=False)


def _base64(content: bytes) -> str:
    return b64encode(content).decode()
