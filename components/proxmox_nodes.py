"""The virtual machines of one cluster: preflight, image, VMs, and proof that each of them answers.

It puts no secret on the hypervisor: a machine gets its address there and its configuration from Talos.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi_proxmoxve as proxmoxve
import pulumiverse_talos as talos
import yaml
from pulumi import ComponentResource, Input, Output, Resource, ResourceOptions

from components import questions
from components.stage import Stage
from config import ClusterConfig, Node


def schematic(extensions: list[str]) -> str:
    """The image factory's recipe: the same extensions give the same text, so the same image."""
    body = {"customization": {"systemExtensions": {"officialExtensions": sorted(extensions)}}}
    return yaml.safe_dump(body, sort_keys=True)


def image_url(factory: str, schematic_id: str, version: str) -> str:
    return f"{factory}/image/{schematic_id}/v{version}/nocloud-amd64.qcow2"


def disk(config: ClusterConfig, interface: str, storage: str | None, size: int) -> proxmoxve.VmLegacyDiskArgsDict:
    return {
        "interface": interface,
        "datastore_id": storage or config.proxmox.storage.disks,
        "size": size,
        "discard": "on",
        "iothread": config.proxmox.scsi_controller == "virtio-scsi-single",
        "ssd": True,
    }


def system_disk(config: ClusterConfig, node: Node, image: Input[str]) -> proxmoxve.VmLegacyDiskArgsDict:
    return {**disk(config, "scsi0", None, node.disk), "import_from": image}


def data_disks(config: ClusterConfig, node: Node) -> list[proxmoxve.VmLegacyDiskArgsDict]:
    return [disk(config, f"scsi{index}", each.storage, each.size) for index, each in enumerate(node.disks, start=1)]


def network_device(config: ClusterConfig, node: Node) -> proxmoxve.VmLegacyNetworkDeviceArgsDict:
    device: proxmoxve.VmLegacyNetworkDeviceArgsDict = {
        "bridge": config.proxmox.bridge,
        "mac_address": node.mac,
        "model": "virtio",
    }
    if config.proxmox.vlan is not None:
        device["vlan_id"] = config.proxmox.vlan
    if config.proxmox.mtu != 1500:
        device["mtu"] = config.proxmox.mtu
    return device


def cloud_init(config: ClusterConfig, node: Node) -> proxmoxve.VmLegacyInitializationArgsDict:
    """The static address the machine boots with; there is no DHCP anywhere."""
    address = f"{node.address}/{config.network.subnet.prefixlen}"
    return {
        "datastore_id": config.proxmox.storage.disks,
        "dns": {"servers": [str(server) for server in config.network.nameservers]},
        "ip_configs": [{"ipv4": {"address": address, "gateway": str(config.network.gateway)}}],
    }


@dataclass(frozen=True, kw_only=True)
class ProxmoxNodesArgs:
    stage: Stage
    token: Input[str]
    talos: Input[Mapping[str, str]]
    """Credentials of this cluster: a machine that already accepts them is as good as a new one."""


class ProxmoxNodes(ComponentResource):
    schematic_id: Output[str]
    """The image factory's name for the image every node boots and upgrades from."""

    def __init__(self, name: str, args: ProxmoxNodesArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("groundwork:index:ProxmoxNodes", name, {}, opts)
        config = args.stage.config
        preflight = args.stage.gate(questions.preflight(config, args.token), parent=self, after=[])
        recipe = talos.imagefactory.Schematic(
            f"{name}-schematic",
            schematic=schematic(config.talos.extensions),
            opts=ResourceOptions(parent=self, depends_on=[preflight]),
        )
        self.schematic_id = recipe.id
        images = {host: self._image(name, config, host, preflight) for host in _hosts_in_use(config)}
        machines = [self._machine(config, node, images[config.nodes[node].host]) for node in config.nodes]
        args.stage.gate(questions.machines_answer(config, args.talos), parent=self, after=machines)
        self.register_outputs({"schematic_id": self.schematic_id})

    def _image(self, name: str, config: ClusterConfig, host: str, preflight: Resource) -> proxmoxve.download.File:
        version = config.versions.talos
        return proxmoxve.download.File(
            f"{name}-image-{host}",
            node_name=host,
            datastore_id=config.proxmox.storage.images,
            content_type="import",
            # The cluster's name is in it because two stacks on one host own two files.
            file_name=f"{config.name}-talos-{version}.qcow2",
            url=self.schematic_id.apply(lambda schematic: image_url(config.talos.image_factory, schematic, version)),
            overwrite=False,
            opts=ResourceOptions(parent=self, depends_on=[preflight]),
        )

    def _machine(self, config: ClusterConfig, name: str, image: proxmoxve.download.File) -> proxmoxve.VmLegacy:
        node = config.nodes[name]
        return proxmoxve.VmLegacy(
            name,
            node_name=node.host,
            vm_id=node.vmid,
            name=name,
            description=f"{node.role} of the Talos cluster {config.name}, managed by groundwork",
            tags=sorted(["groundwork", config.name, node.role]),
            pool_id=config.proxmox.pool,
            on_boot=True,
            started=True,
            agent={"enabled": True, "wait_for_ip": {"disabled": True}},
            cpu={"cores": node.cores, "type": config.proxmox.cpu_type},
            memory={"dedicated": node.memory},
            operating_system={"type": "l26"},
            scsi_hardware=config.proxmox.scsi_controller,
            disks=[system_disk(config, node, image.id), *data_disks(config, node)],
            boot_orders=["scsi0"],
            # Otherwise the provider attaches the host's own drive, which takes a privilege over its console.
            cdrom={"file_id": "none", "interface": "ide3"},
            network_devices=[network_device(config, node)],
            initialization=cloud_init(config, node),
            # The provider would reboot several control planes at once; a node is rebooted by a person, one at a time.
            reboot_after_update=False,
            stop_on_destroy=True,
            # Volumes that a storage driver attached belong to somebody's data.
            delete_unreferenced_disks_on_destroy=False,
            opts=ResourceOptions(parent=self, protect=config.protect_nodes, ignore_changes=["disks"]),
        )


def _hosts_in_use(config: ClusterConfig) -> list[str]:
    return sorted({node.host for node in config.nodes.values()})
