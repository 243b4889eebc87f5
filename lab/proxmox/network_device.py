"""The netN and ipconfigN options."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from ipaddress import IPv4Interface, ip_address

from lab.proxmox import property_string
from lab.proxmox.errors import ParameterError

_MODEL_NAMES = (
    "e1000 e1000-82540em e1000-82544gc e1000-82545em e1000e i82551 i82557b i82559er ne2k_isa ne2k_pci pcnet"
    " rtl8139 virtio vmxnet3"
)
MODELS = frozenset(_MODEL_NAMES.split())
_KEYS = frozenset(["bridge", "firewall", "link_down", "macaddr", "model", "mtu", "queues", "rate", "tag", "trunks"])
_MAC = re.compile(r"^[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}$")
MAC_PREFIX = "BC:24:11"


@dataclass(frozen=True, kw_only=True)
class NetworkDevice:
    model: str
    mac: str
    others: dict[str, str]

    @property
    def bridge(self) -> str | None:
        return self.others.get("bridge")

    @property
    def vlan(self) -> int | None:
        return int(self.others["tag"]) if "tag" in self.others else None

    @property
    def connected(self) -> bool:
        return self.others.get("link_down", "0") == "0" and self.bridge is not None

    def render(self) -> str:
        return property_string.render({"": f"{self.model}={self.mac}", **self.others}, "")


def network_device(option: str, text: str) -> NetworkDevice:
    """Both spellings: model=virtio,macaddr=… and virtio=…; without an address it gets a random one."""
    values = property_string.parse(text, "model", option)
    for model in MODELS & values.keys():
        values |= {"model": model, "macaddr": values.pop(model)}
    _check(option, values)
    mac = values.pop("macaddr", None) or random_mac()
    return NetworkDevice(model=values.pop("model"), mac=mac, others=_canonical(values))


def _check(option: str, values: dict[str, str]) -> None:
    strange = values.keys() - _KEYS
    if strange:
        raise _invalid(option, f"invalid key in comma-separated list property: {min(strange)}")
    if values.get("model") not in MODELS:
        raise _invalid(option, "format error\nmodel: property is missing and it is not optional")
    if "macaddr" in values and not _MAC.match(values["macaddr"]):
        raise _invalid(option, "format error\nmacaddr: value does not look like a valid unicast MAC address")
    if "tag" in values and not 1 <= int(values["tag"]) <= 4094:
        raise _invalid(option, "format error\ntag: value must have a maximum value of 4094")


def _canonical(values: dict[str, str]) -> dict[str, str]:
    """rate=1.000000 reads back as rate=1."""
    return values | ({"rate": f"{float(values['rate']):g}"} if "rate" in values else {})


def _invalid(option: str, message: str) -> ParameterError:
    return ParameterError.named({option: f"invalid format - {message}"})


def random_mac() -> str:
    return MAC_PREFIX + "".join(f":{byte:02X}" for byte in secrets.token_bytes(3))


@dataclass(frozen=True, kw_only=True)
class AddressConfig:
    address: IPv4Interface | None
    gateway: str | None


def address_config(option: str, text: str) -> AddressConfig:
    values = property_string.parse(text, "ip", option)
    if values.get("gw") and not values.get("ip"):
        raise _invalid(option, "gateway specified without specifying an IP address")
    try:
        static = values.get("ip", "dhcp") != "dhcp"
        if "gw" in values:
            ip_address(values["gw"])
        return AddressConfig(address=IPv4Interface(values["ip"]) if static else None, gateway=values.get("gw"))
    except ValueError:
        raise _invalid(
            option, "format error\nip: value does not look like a valid ipv4 network configuration"
        ) from None
