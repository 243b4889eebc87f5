"""The options of a virtual machine: their types, and who may set them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from lab.proxmox.errors import ParameterError
from lab.proxmox.property_string import boolean

DRIVE = re.compile(r"^(?:ide[0-3]|sata[0-5]|scsi(?:[0-9]|[12][0-9]|30)|virtio(?:[0-9]|1[0-5])|efidisk0|tpmstate0)$")
UNUSED = re.compile(r"^unused\d+$")
_INDEXED = re.compile(r"^(?:net|ipconfig|serial|usb|hostpci|numa|parallel|virtiofs|unused)\d+$")

_KINDS = {
    "boolean": "acpi allow-ksm autostart ciupgrade freeze keephugepages kvm localtime numa onboot protection reboot"
    " tablet tdf template",
    "integer": "balloon cores cpuunits migrate_speed shares smp sockets vcpus",
    "number": "cpulimit migrate_downtime",
    "string": "affinity agent amd-sev arch args audio0 bios boot bootdisk cdrom cicustom cipassword citype ciuser cpu"
    " description hookscript hotplug hugepages intel-tdx ivshmem keyboard lock machine memory name nameserver ostype"
    " rng0 scsihw searchdomain smbios1 spice_enhancements sshkeys startdate startup tags vga vmgenid vmstatestorage"
    " watchdog",
}
KIND = {name: kind for kind, names in _KINDS.items() for name in names.split()}

_CHOICES = {
    "bios": "seabios ovmf",
    "citype": "configdrive2 nocloud opennebula",
    "hugepages": "any 2 1024",
    "ostype": "other wxp w2k w2k3 w2k8 wvista win7 win8 win10 win11 l24 l26 solaris",
    "scsihw": "lsi lsi53c810 virtio-scsi-pci virtio-scsi-single megasas pvscsi",
}

_PRIVILEGES = {
    "VM.Config.CPU": "cores cpu cpulimit cpuunits numa smp sockets vcpus",
    "VM.Config.Memory": "memory balloon shares allow-ksm",
    "VM.Config.HWType": "acpi hotplug kvm machine scsihw smbios1 tablet vga watchdog audio0 rng0",
    "VM.Config.Options": "agent autostart bios description keyboard localtime migrate_downtime migrate_speed name"
    " onboot ostype protection reboot startdate startup tags tdf template",
    "VM.PowerMgmt": "freeze",
    "VM.Config.Disk": "boot bootdisk vmstatestorage",
}
_PRIVILEGE = {name: privilege for privilege, names in _PRIVILEGES.items() for name in names.split()}
_CLOUD_INIT_NAMES = "cicustom cipassword citype ciuser ciupgrade nameserver searchdomain sshkeys"
CLOUD_INIT = frozenset(_CLOUD_INIT_NAMES.split())
_EITHER = ("VM.Config.Cloudinit", "VM.Config.Network")
_INDEXED_PRIVILEGES = {"net": ("VM.Config.Network",), "ipconfig": _EITHER, "numa": ("VM.Config.CPU",)}
_HOST_DEVICES = frozenset({"serial", "usb", "hostpci", "virtiofs"})

# Changes that a running machine takes over at once; all others wait until it is started again.
_LIVE_NAMES = (
    "description hookscript lock migrate_downtime migrate_speed name onboot protection shares startup tags"
    " vmstatestorage"
)
_LIVE = CLOUD_INIT | frozenset(_LIVE_NAMES.split())
_LIVE_INDEXED = re.compile(r"^(?:ipconfig|net|unused)\d+$")

_DNS_NAME = re.compile(r"^(?!-)[A-Za-z0-9-]{1,63}(?<!-)(?:\.(?!-)[A-Za-z0-9-]{1,63}(?<!-))*$")
_TAG = re.compile(r"^[a-z0-9_][a-z0-9_\-+.]*$", re.IGNORECASE)


def known(option: str) -> bool:
    return option in KIND or bool(DRIVE.match(option) or _INDEXED.match(option))


def live(option: str) -> bool:
    return option in _LIVE or bool(_LIVE_INDEXED.match(option) or DRIVE.match(option))


def needed_privileges(option: str, value: str | None) -> tuple[str, ...]:
    """Any of these is enough; nothing for drives, which depend on their storage; root alone when unknown."""
    if DRIVE.match(option) or UNUSED.match(option) or option == "cdrom":
        return ()
    if option in CLOUD_INIT:
        return _EITHER
    if _INDEXED.match(option):
        return _needed_indexed(option.rstrip("0123456789"), value)
    return (_PRIVILEGE[option],) if option in _PRIVILEGE else ("root",)


def _needed_indexed(family: str, value: str | None) -> tuple[str, ...]:
    """Real host devices are root's; a socket and a mapped device are not."""
    harmless = {"serial": value in {None, "socket"}}.get(family, value is None or "mapping=" in value)
    if family in _HOST_DEVICES:
        return ("VM.Config.HWType",) if harmless else ("root",)
    return _INDEXED_PRIVILEGES.get(family, ("root",))


def check(options: Mapping[str, str]) -> None:
    """Refuse what Proxmox's own schema refuses, every fault at once."""
    faults = {option: fault for option, value in options.items() if (fault := _fault(option, value))}
    if faults:
        raise ParameterError.named(faults)


def _fault(option: str, value: str) -> str | None:
    kind = KIND.get(option, "string")
    if kind == "boolean" and boolean(value) is None:
        return f"type check ('boolean') failed - got '{value}'"
    if kind == "integer" and not re.match(r"^-?\d+$", value):
        return f"type check ('integer') failed - got '{value}'"
    if kind == "number" and not re.match(r"^-?\d+(?:\.\d+)?$", value):
        return f"type check ('number') failed - got '{value}'"
    if option in _CHOICES and value not in _CHOICES[option].split():
        return f"value '{value}' does not have a value in the enumeration '{', '.join(_CHOICES[option].split())}'"
    return _format_fault(option, value)


def _format_fault(option: str, value: str) -> str | None:
    if option == "name" and not _DNS_NAME.match(value):
        return "invalid format - value does not look like a valid DNS name"
    if option == "tags" and not all(_TAG.match(tag) for tag in split_list(value)):
        return "invalid format - invalid characters in tag"
    return None


def typed(option: str, value: str) -> str | int | float:
    """As it reads back: numbers as numbers, booleans as 0 and 1."""
    match KIND.get(option, "string"):
        case "boolean":
            return int(bool(boolean(value)))
        case "integer":
            return int(value)
        case "number":
            return float(value)
        case _:
            return "**********" if option == "cipassword" else value


def split_list(text: str) -> list[str]:
    """Proxmox separates lists with commas, semicolons, blanks or NULs."""
    return [part for part in re.split(r"[,;\s\0]+", text) if part]


def unique_tags(tags: Iterable[str]) -> str:
    return ";".join(sorted({tag.lower() for tag in tags}))
