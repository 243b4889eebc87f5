"""What a control plane's machine config says about the Kubernetes cluster it is to run."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, ip_network
from typing import Any
from urllib.parse import urlsplit

from lab.kubernetes.pki import CertificateAuthority

POD_SUBNET = "10.244.0.0/16"
SERVICE_SUBNET = "10.96.0.0/12"
DNS_DOMAIN = "cluster.local"
COREDNS_IMAGE = "registry.k8s.io/coredns/coredns:v1.14.2"
KUBERNETES_VERSION = "v1.36.0"


@dataclass(frozen=True, kw_only=True)
class ClusterSettings:
    """A typed view of the v1alpha1 document; the parts a control plane needs and nothing else."""

    name: str
    endpoint: str
    """The URL of `cluster.controlPlane.endpoint`."""
    ca: CertificateAuthority
    aggregator: CertificateAuthority
    etcd: CertificateAuthority
    service_account: bytes
    """PEM private key."""
    secretbox: str
    aescbc: str
    pod_subnets: list[str]
    service_subnets: list[str]
    dns_domain: str
    section: Mapping[str, Any]
    """The whole `cluster` section, for what is passed on as it stands."""

    @classmethod
    def parse(cls, config: Mapping[str, Any]) -> ClusterSettings:
        section = config["cluster"]
        network = section.get("network") or {}
        return cls(
            name=section.get("clusterName") or "",
            endpoint=section["controlPlane"]["endpoint"],
            ca=CertificateAuthority.parse(section["ca"]),
            aggregator=CertificateAuthority.parse(section["aggregatorCA"]),
            etcd=CertificateAuthority.parse(section["etcd"]["ca"]),
            service_account=b64decode(section["serviceAccount"]["key"]),
            secretbox=section.get("secretboxEncryptionSecret") or "",
            aescbc=section.get("aescbcEncryptionSecret") or "",
            pod_subnets=network.get("podSubnets") or [POD_SUBNET],
            service_subnets=network.get("serviceSubnets") or [SERVICE_SUBNET],
            dns_domain=network.get("dnsDomain") or DNS_DOMAIN,
            section=section,
        )

    @property
    def host(self) -> str:
        return urlsplit(self.endpoint).hostname or ""

    @property
    def cni(self) -> str:
        return str(((self.section.get("network") or {}).get("cni") or {}).get("name") or "flannel")

    def service_address(self, index: int) -> str:
        """1 is the API server's own address, 10 the resolver's."""
        return str(_ipv4(self.service_subnets)[index])

    def component(self, name: str) -> Mapping[str, Any]:
        """A sub-section such as apiServer, which may be missing or null."""
        section: Mapping[str, Any] = self.section.get(name) or {}
        return section

    def extra_args(self, component: str) -> dict[str, list[str]]:
        return arguments(self.component(component).get("extraArgs"))

    def alternative_names(self) -> list[str]:
        """What the API server's certificate names before any machine has joined."""
        names = [
            *(self.component("apiServer").get("certSANs") or []),
            self.host,
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            f"kubernetes.default.svc.{self.dns_domain}",
            "localhost",
            "127.0.0.1",
            self.service_address(1),
        ]
        return list(dict.fromkeys(name for name in names if name))


def arguments(extra: Mapping[str, Any] | None) -> dict[str, list[str]]:
    """`extraArgs` in one form: a value may be a string or, since Talos 1.12, a list of them."""
    return {name: _texts(value) for name, value in (extra or {}).items()}


def image_version(image: str | None) -> str:
    """The tag of an image reference, without its digest."""
    tag = (image or "").split("@")[0].rpartition("/")[2].partition(":")[2]
    return tag or KUBERNETES_VERSION


def _texts(value: Any) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else [str(value)]


def _ipv4(subnets: Sequence[str]) -> IPv4Network:
    networks = (ip_network(subnet) for subnet in subnets)
    return next(network for network in networks if isinstance(network, IPv4Network))
