"""The specs of a machine's resources, in both of the forms Talos sends them in."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Interface
from typing import Any

from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Struct

from lab.talos.store import Spec
from talos_api import definitions_pb2 as pb

STAGES = ("unknown", "booting", "installing", "maintenance", "running", "rebooting", "shutting down", "resetting")
MACHINE_TYPES = {"controlplane": 2, "worker": 3}
GIBIBYTE = 1024**3


def machine_status(stage: str, unmet: Sequence[tuple[str, str]]) -> Spec:
    conditions = [{"name": name, "reason": reason} for name, reason in unmet]
    status = pb.MachineStatusSpec.Status(ready=not unmet)
    for name, reason in unmet:
        status.unmet_conditions.add(name=name, reason=reason)
    return Spec(
        yaml={"stage": stage, "status": {"ready": not unmet, "unmetConditions": conditions}},
        proto=pb.MachineStatusSpec(stage=STAGES.index(stage), status=status),
    )


def diagnostic(message: str, details: Sequence[str]) -> Spec:
    return Spec(
        yaml={"message": message, "details": list(details)}, proto=pb.DiagnosticSpec(message=message, details=details)
    )


def service(*, running: bool, healthy: bool, unknown: bool) -> Spec:
    return Spec(
        yaml={"running": running, "healthy": healthy, "unknown": unknown},
        proto=pb.ServiceSpec(running=running, healthy=healthy, unknown=unknown),
    )


def time_status(*, synced: bool, disabled: bool) -> Spec:
    return Spec(
        yaml={"synced": synced, "epoch": 1, "syncDisabled": disabled},
        proto=pb.TimeStatusSpec(synced=synced, epoch=1, sync_disabled=disabled),
    )


def disk(path: str, size: int) -> Spec:
    fields: dict[str, Any] = {
        "dev_path": path,
        "size": size,
        "pretty_size": pretty(size),
        "io_size": 512,
        "sector_size": 512,
        "model": "QEMU HARDDISK",
        "bus_path": "/pci0000:00/0000:00:05.0/virtio1/host2/target2:0:0/2:0:0:0/",
        "sub_system": "/sys/class/block",
        "transport": "virtio",
        "rotational": True,
    }
    return Spec(yaml={**fields, "readonly": False, "cdrom": False}, proto=pb.DiskSpec(**fields))


def volume_status(parent: str, location: str, size: int, filesystem: tuple[str, int]) -> Spec:
    name, number = filesystem
    return Spec(
        yaml={
            "phase": "ready",
            "type": "partition",
            "location": location,
            "parentLocation": parent,
            "size": size,
            "prettySize": pretty(size),
            "filesystem": name,
        },
        proto=pb.VolumeStatusSpec(
            phase=6,
            location=location,
            parent_location=parent,
            size=size,
            filesystem=number,
            pretty_size=pretty(size),
            type=0,
        ),
    )


def mount_status(source: str, target: str, filesystem: str) -> Spec:
    return Spec(
        yaml={"source": source, "target": target, "filesystemType": filesystem, "options": [], "encrypted": False},
        proto=pb.MountStatusSpec(source=source, target=target, filesystem_type=filesystem),
    )


def address_status(address: IPv4Interface, link: str) -> Spec:
    return Spec(
        yaml={
            "address": str(address),
            "local": str(address.ip),
            "linkIndex": 2,
            "linkName": link,
            "family": "inet4",
            "scope": "global",
            "flags": "permanent",
            "priority": 0,
        },
        proto=pb.AddressStatusSpec(
            address=_prefix(address),
            local=_ip(address.ip),
            link_index=2,
            link_name=link,
            family=2,
            scope=0,
            flags=0x80,
        ),
    )


def node_address(addresses: Sequence[IPv4Interface]) -> Spec:
    return Spec(
        yaml={"addresses": [str(address) for address in addresses], "sortAlgorithm": "v1"},
        proto=pb.NodeAddressSpec(addresses=[_prefix(address) for address in addresses]),
    )


def hostname_status(hostname: str) -> Spec:
    return Spec(yaml={"hostname": hostname, "domainname": ""}, proto=pb.HostnameStatusSpec(hostname=hostname))


def link_status(mac: str, alias: str | None) -> Spec:
    hardware = bytes.fromhex(mac.replace(":", ""))
    return Spec(
        yaml={
            **({"alias": alias} if alias else {}),
            "index": 2,
            "type": "ether",
            "hardwareAddr": mac.lower(),
            "permanentAddr": mac.lower(),
            "mtu": 1500,
            "operationalState": "up",
            "kind": "",
            "driver": "virtio_net",
            "linkState": True,
        },
        proto=pb.LinkStatusSpec(
            index=2,
            type=1,
            hardware_addr=hardware,
            permanent_addr=hardware,
            mtu=1500,
            operational_state=6,
            driver="virtio_net",
            link_state=True,
            alias=alias or "",
        ),
    )


def vip_operator(vip: str, link: str) -> Spec:
    return Spec(
        yaml={
            "operator": "vip",
            "linkName": link,
            "requireUp": True,
            "vip": {"ip": vip, "gratuitousARP": True},
            "layer": "configuration",
        },
        proto=pb.OperatorSpecSpec(
            operator=2,
            link_name=link,
            require_up=True,
            config_layer=4,
            vip=pb.OperatorSpecSpec.VIPOperatorSpec(ip=_ip(IPv4Address(vip)), gratuitous_arp=True),
        ),
    )


def static_pod_status(*, ready: bool) -> Spec:
    state = "True" if ready else "False"
    status = {
        "phase": "Running" if ready else "Pending",
        "conditions": [{"type": kind, "status": state} for kind in ("Initialized", "Ready", "ContainersReady")],
    }
    return Spec(yaml=status, proto=pb.StaticPodStatusSpec(pod_status=ParseDict(status, Struct())))


def bootstrap_manifests(cluster: dict[str, Any], pods: list[str], cni: str) -> Spec:
    network = cluster.get("network") or {}
    domain = str(network.get("dnsDomain") or "cluster.local")
    proxy = not (cluster.get("proxy") or {}).get("disabled", False)
    dns = not (cluster.get("coreDNS") or {}).get("disabled", False)
    return Spec(
        yaml={
            "string": str((cluster.get("controlPlane") or {}).get("endpoint") or ""),
            "clusterDomain": domain,
            "podCIDRs": pods,
            "proxyEnabled": proxy,
            "coreDNSEnabled": dns,
            "flannelEnabled": cni == "flannel",
            "cniName": cni,
        },
        proto=pb.BootstrapManifestsConfigSpec(
            cluster_domain=domain,
            pod_cid_rs=pods,
            proxy_enabled=proxy,
            core_dns_enabled=dns,
            flannel_enabled=cni == "flannel",
            cni_name=cni,
        ),
    )


def nodename(name: str) -> Spec:
    return Spec(
        yaml={"nodename": name, "hostnameVersion": "1", "skipNodeRegistration": False},
        proto=pb.NodenameSpec(nodename=name, hostname_version="1"),
    )


def kubelet(image: str, name: str) -> Spec:
    return Spec(
        yaml={"image": image, "expectedNodename": name, "config": {}},
        proto=pb.KubeletSpecSpec(image=image, expected_nodename=name),
    )


def member(id: str, hostname: str, role: str, version: str, addresses: Sequence[IPv4Interface]) -> Spec:
    system = f"Talos ({version})"
    plain: dict[str, Any] = {
        "nodeId": id,
        "addresses": [str(address.ip) for address in addresses],
        "hostname": hostname,
        "machineType": role,
        "operatingSystem": system,
    }
    message = pb.MemberSpec(
        node_id=id,
        addresses=[_ip(address.ip) for address in addresses],
        hostname=hostname,
        machine_type=MACHINE_TYPES[role],
        operating_system=system,
    )
    if role == "controlplane":
        plain["controlPlane"] = {"port": 6443}
        message.control_plane.api_server_port = 6443
    return Spec(yaml=plain, proto=message)


def machine_config(data: bytes) -> Spec:
    return Spec(yaml=data.decode(), proto=pb.MachineConfigSpec(yaml_marshalled=data))


def pretty(size: int) -> str:
    return f"{size / 1e9:.0f} GB"


def _ip(address: IPv4Address) -> pb.NetIP:
    return pb.NetIP(ip=address.packed)


def _prefix(address: IPv4Interface) -> pb.NetIPPrefix:
    return pb.NetIPPrefix(ip=address.ip.packed, prefix_length=address.network.prefixlen)
