"""A machine config as a machine reads it: who it is, where it is, and to which cluster it belongs."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from functools import cached_property
from ipaddress import IPv4Interface
from typing import Any

import yaml

from lab.talos.pki import Authority

LINK_NAME = "ens18"
"""What the kernel calls the first network device of a Proxmox virtual machine."""

_MAC_SELECTOR = re.compile(r'mac\(link\.permanent_addr\)\s*==\s*"([^"]+)"')

Document = dict[str, Any]


class AppliedConfig:
    def __init__(self, data: bytes) -> None:
        self.data = data
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        parsed = [document for document in yaml.load_all(data, Loader=loader) if document]
        self.main: Document = next((each for each in parsed if "kind" not in each), {})
        self.documents: list[Document] = [each for each in parsed if "kind" in each]

    def of_kind(self, kind: str) -> list[Document]:
        return [document for document in self.documents if document["kind"] == kind]

    @property
    def machine(self) -> Document:
        return self.main.get("machine") or {}

    @property
    def cluster(self) -> Document:
        return self.main.get("cluster") or {}

    @property
    def role(self) -> str:
        return "worker" if self.machine.get("type") == "worker" else "controlplane"

    @property
    def is_control_plane(self) -> bool:
        return self.role == "controlplane"

    @property
    def cluster_id(self) -> str:
        return str(self.cluster.get("id") or "")

    @property
    def cluster_name(self) -> str:
        return str(self.cluster.get("clusterName") or "")

    @property
    def endpoint(self) -> str:
        return str((self.cluster.get("controlPlane") or {}).get("endpoint") or "")

    @property
    def pod_subnets(self) -> list[str]:
        return list((self.cluster.get("network") or {}).get("podSubnets") or ["10.244.0.0/16"])

    @property
    def cni(self) -> str:
        return str(((self.cluster.get("network") or {}).get("cni") or {}).get("name") or "flannel")

    @property
    def kubelet_image(self) -> str:
        return str((self.machine.get("kubelet") or {}).get("image") or "")

    @property
    def cert_sans(self) -> list[str]:
        return [str(name) for name in self.machine.get("certSANs") or []]

    @property
    def ca_certificate(self) -> str:
        return _decoded((self.machine.get("ca") or {}).get("crt"))

    @cached_property
    def authority(self) -> Authority | None:
        """None on a worker: its config has no CA key."""
        key = _decoded((self.machine.get("ca") or {}).get("key"))
        return Authority(certificate=self.ca_certificate, key=key) if key else None

    @property
    def hostname(self) -> str | None:
        """None when the config leaves it to the machine."""
        for document in self.of_kind("HostnameConfig"):
            if document.get("hostname"):
                return str(document["hostname"])
        name = (self.machine.get("network") or {}).get("hostname")
        return str(name) if name else None

    @property
    def time_sync_disabled(self) -> bool:
        if any(document.get("enabled") is False for document in self.of_kind("TimeSyncConfig")):
            return True
        return bool((self.machine.get("time") or {}).get("disabled"))

    def alias(self, mac: str) -> str | None:
        """The name this machine's link is given by a selector that matches it."""
        for document in self.of_kind("LinkAliasConfig"):
            if _selects(document, mac):
                return str(document["name"])
        return None

    def addresses(self, mac: str) -> list[IPv4Interface]:
        """Those of documents that name this machine's link; what names another link has no effect."""
        found = [IPv4Interface(entry["address"]) for link in self._links(mac) for entry in link.get("addresses") or []]
        for interface in self._interfaces(mac):
            found += [IPv4Interface(address) for address in interface.get("addresses") or []]
        return found

    def vip(self, mac: str) -> str | None:
        for document in self.of_kind("Layer2VIPConfig"):
            if document.get("link") in self._names(mac):
                return str(document["name"])
        for interface in self._interfaces(mac):
            if (interface.get("vip") or {}).get("ip"):
                return str(interface["vip"]["ip"])
        return None

    def _names(self, mac: str) -> set[str | None]:
        return {LINK_NAME, self.alias(mac)}

    def _links(self, mac: str) -> Iterator[Document]:
        names = self._names(mac)
        return (document for document in self.of_kind("LinkConfig") if document.get("name") in names)

    def _interfaces(self, mac: str) -> Iterator[Document]:
        for interface in (self.machine.get("network") or {}).get("interfaces") or []:
            selector = interface.get("deviceSelector") or {}
            wanted = selector.get("hardwareAddr") or selector.get("permanentAddr")
            if interface.get("interface") == LINK_NAME or (wanted and wanted.lower() == mac.lower()):
                yield interface


def _selects(document: Document, mac: str) -> bool:
    match = _MAC_SELECTOR.search(str((document.get("selector") or {}).get("match") or ""))
    return match is not None and match[1].lower() == mac.lower()


def _decoded(text: str | None) -> str:
    return base64.b64decode(text).decode() if text else ""
