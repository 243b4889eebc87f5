"""Machines on the emulated Proxmox: created, read back, started, changed, destroyed."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Interface
from pathlib import Path
from typing import Any

import pytest
from proxmoxer import ResourceException

from tests.proxmox_site import FILE, IMAGE, IMAGE_SIZE, Site, site


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Site]:
    with site(tmp_path) as running:
        assert running.download() == "OK"
        yield running


def refused(call: Any, status: int = 500) -> str:
    with pytest.raises(ResourceException) as caught:
        call()
    assert caught.value.status_code == status
    return str(caught.value.content)


def test_the_configuration_reads_back_as_proxmox_keeps_it(lab: Site) -> None:
    assert lab.create() == "OK"
    config = lab.vm().config.get()
    assert config["scsi0"].startswith("local-lvm:vm-100-disk-0,aio=io_uring,backup=1,discard=on,iothread=1,size=")
    assert "import-from" not in config["scsi0"]
    assert config["net0"] == "virtio=BC:24:11:00:00:01,bridge=vmbr0,firewall=0,tag=11"
    assert config["ide2"] == "local-lvm:vm-100-cloudinit,media=cdrom"
    assert config["tags"] == "a;b;worker"
    assert (config["cores"], config["onboot"], config["acpi"], config["memory"]) == (2, 1, 1, "4096")
    assert config["vmgenid"]
    assert config["smbios1"].startswith("uuid=")
    assert len(config["digest"]) == 40


def test_a_card_without_an_address_gets_one_of_proxmox(lab: Site) -> None:
    lab.create(net0="virtio,bridge=vmbr0")
    assert lab.vm().config.get()["net0"].startswith("virtio=BC:24:11:")


def test_passwords_are_not_shown(lab: Site) -> None:
    lab.create(cipassword="secret")
    assert lab.vm().config.get()["cipassword"] == "**********"


def test_a_machine_boots_what_was_imported_and_configured(lab: Site) -> None:
    lab.create()
    assert lab.finish(lab.vm().resize.put(disk="scsi0", size=str(20 << 30))) == "OK"
    assert lab.vm().config.get()["scsi0"].endswith("size=20G")
    assert lab.finish(lab.vm().status.start.post(timeout=1800)) == "OK"
    boot = lab.power.on[100]
    assert (boot.name, boot.host, boot.mac, boot.bridge, boot.vlan) == (
        "node-1", "atlas", "BC:24:11:00:00:01", "vmbr0", 11,
    )  # fmt: skip
    assert (boot.address, boot.gateway) == (IPv4Interface("10.0.0.11/24"), "10.0.0.1")
    assert (boot.cores, boot.memory, boot.disks) == (2, 4096, {"scsi0": 20 << 30})
    assert boot.image is not None
    assert (boot.image.url, boot.image.size, boot.image.whole) == (IMAGE, IMAGE_SIZE, True)
    assert lab.vm().status.current.get()["status"] == "running"


def test_an_image_on_another_host_cannot_be_imported(lab: Site) -> None:
    outcome = lab.create(node="boreas")
    assert outcome == f"unable to create VM 100 - cannot import from '{FILE}' - volume '{FILE}' does not exist"
    assert lab.client().cluster.resources.get(type="vm") == []


@pytest.mark.parametrize(
    ("changes", "lost"),
    [
        ({"scsi0": "file=local-lvm:20"}, "image"),
        ({"boot": "order=net0"}, "image"),
        ({"ide2": None}, "address"),
        ({"ipconfig0": None}, "address"),
        ({"ipconfig0": "ip=dhcp"}, "address"),
        ({"net0": "virtio,bridge=vmbr0,link_down=1"}, "address"),
    ],
)
def test_what_is_not_configured_is_not_there_at_boot(lab: Site, changes: dict[str, Any], lost: str) -> None:
    assert lab.create(**changes) == "OK"
    lab.finish(lab.vm().status.start.post())
    assert getattr(lab.power.on[100], lost) is None


def test_a_compressed_image_boots_nothing(lab: Site) -> None:
    packed = IMAGE.replace(".qcow2", ".raw.xz")
    assert "not in qcow2 format" in lab.download(url=packed, filename="packed.qcow2")
    assert lab.download(url=packed, filename="packed.raw") == "OK"
    assert lab.create(scsi0="file=local-lvm:0,import-from=local:import/packed.raw") == "OK"
    lab.finish(lab.vm().status.start.post())
    assert lab.power.on[100].image is None


def test_a_bridge_that_is_not_there_stops_the_start(lab: Site) -> None:
    lab.create(net0="virtio,bridge=vmbr9")
    assert lab.finish(lab.vm().status.start.post()) == "bridge 'vmbr9' does not exist"
    assert lab.vm().status.current.get()["status"] == "stopped"


def test_power(lab: Site) -> None:
    lab.create()
    vm = lab.vm()
    assert refused(vm.status.reboot.post) == "VM 100 not running"
    for verb in ("start", "reboot", "reset", "shutdown", "stop"):
        assert lab.finish(vm.status(verb).post()) == "OK"
    assert lab.finish(vm.status.start.post()) == "OK"
    assert lab.finish(vm.status.start.post()) == "VM 100 already running"
    assert lab.finish(vm.status.stop.post()) == "OK"
    assert lab.power.events == [
        "on 100", "shutdown 100", "on 100", "off 100", "on 100", "shutdown 100", "on 100", "off 100",
    ]  # fmt: skip


def test_a_running_machine_takes_hardware_changes_at_its_next_start(lab: Site) -> None:
    lab.create()
    vm = lab.vm()
    lab.finish(vm.status.start.post())
    vm.config.put(cores=8, description="more of them", delete="tags")
    assert (vm.config.get()["cores"], vm.config.get(current=1)["cores"]) == (8, 2)
    assert vm.config.get(current=1)["description"] == "more of them"
    assert "tags" not in vm.config.get()
    lab.finish(vm.status.reboot.post())
    assert (vm.config.get(current=1)["cores"], lab.power.on[100].cores) == (8, 8)


def test_drives_come_and_go(lab: Site) -> None:
    lab.create()
    vm = lab.vm()
    assert lab.finish(vm.config.post(scsi1="local-lvm:5,iothread=1")) == "OK"
    assert vm.config.get()["scsi1"] == "local-lvm:vm-100-disk-1,iothread=1,size=5G"
    vm.config.put(scsi1="local-lvm:vm-100-disk-1,iothread=0,size=5G")
    assert vm.config.get()["scsi1"] == "local-lvm:vm-100-disk-1,iothread=0,size=5G"
    vm.config.put(delete="scsi1")
    assert vm.config.get()["unused0"] == "local-lvm:vm-100-disk-1"
    vm.config.put(delete="unused0")
    volumes = lab.client().nodes("atlas").storage("local-lvm").content.get(vmid=100)
    assert [volume["volid"] for volume in volumes] == ["local-lvm:vm-100-cloudinit", "local-lvm:vm-100-disk-0"]


def test_growing_is_all_a_disk_can(lab: Site) -> None:
    lab.create(scsi0="local-lvm:10")
    resize = lab.vm().resize
    assert lab.finish(resize.put(disk="scsi0", size="+2G")) == "OK"
    assert lab.vm().config.get()["scsi0"] == "local-lvm:vm-100-disk-0,size=12G"
    assert lab.finish(resize.put(disk="scsi0", size="5G")) == "shrinking disks is not supported"
    assert lab.finish(resize.put(disk="scsi5", size="5G")) == "disk 'scsi5' does not exist"
    assert lab.finish(resize.put(disk="ide2", size="5G")) == "you can't resize a cdrom"


def test_a_disk_moves_between_storages(lab: Site) -> None:
    lab.create()
    assert refused(lambda: lab.vm().move_disk.post(disk="scsi0", storage="local"), 400).startswith("Parameter")
    assert refused(lambda: lab.vm().move_disk.post(disk="scsi0", storage="local-lvm")).startswith("you can't move to")


def test_destroying_needs_a_stopped_machine_and_leaves_nothing(lab: Site) -> None:
    lab.create()
    lab.finish(lab.vm().status.start.post())
    assert refused(lab.vm().delete) == "VM 100 is running - destroy failed"
    lab.finish(lab.vm().status.stop.post())
    assert lab.finish(lab.vm().delete(**{"purge": 1, "destroy-unreferenced-disks": 1})) == "OK"
    gone = "Configuration file 'nodes/atlas/qemu-server/100.conf' does not exist"
    assert refused(lab.vm().status.current.get) == gone
    assert lab.client().nodes("atlas").storage("local-lvm").content.get() == []
    assert lab.power.events[-1] == "erase 100"


def test_a_volume_of_another_owner_survives_its_machine(lab: Site) -> None:
    lab.create()
    lab.create(vmid=999, scsi0="local-lvm:5", net0=None, ide2=None, ipconfig0=None)
    lab.vm().config.put(scsi7="local-lvm:vm-999-disk-0")
    assert lab.finish(lab.vm().delete(purge=1)) == "OK"
    volumes = lab.client().nodes("atlas").storage("local-lvm").content.get()
    assert [volume["volid"] for volume in volumes] == ["local-lvm:vm-999-disk-0"]


def test_protection_keeps_a_machine(lab: Site) -> None:
    lab.create(protection=1)
    assert refused(lab.vm().delete) == "can't remove VM 100 - protection mode enabled"


def test_an_id_is_taken_once(lab: Site) -> None:
    assert lab.client().cluster.nextid.get() == "100"
    lab.create()
    assert lab.client().cluster.nextid.get() == "101"
    assert refused(lambda: lab.client().cluster.nextid.get(vmid=100), 400).startswith("Parameter")
    again = "unable to create VM 100 - VM 100 already exists on node 'atlas'"
    assert refused(lambda: lab.create(node="boreas")) == again


def test_templates_and_their_clones(lab: Site) -> None:
    lab.create()
    vm = lab.vm()
    assert lab.finish(vm.template.post()) == "OK"
    assert vm.config.get()["scsi0"].startswith("local-lvm:base-100-disk-0,")
    assert lab.finish(vm.status.start.post()) == "you can't start a vm if it's a template"
    assert lab.finish(vm.clone.post(newid=101, name="copy", full=1)) == "OK"
    config = lab.vm(101).config.get()
    assert (config["name"], config["ide2"]) == ("copy", "local-lvm:vm-101-cloudinit,media=cdrom")
    assert config["net0"] != vm.config.get()["net0"]
    lab.finish(lab.vm(101).status.start.post())
    assert lab.power.on[101].image is not None


def test_a_machine_moves_to_another_host_with_its_disks(lab: Site) -> None:
    lab.create()
    assert lab.vm().migrate.get()["allowed_nodes"] == ["boreas"]
    assert refused(lambda: lab.vm().migrate.post(target="atlas"), 400).startswith("Parameter")
    assert lab.finish(lab.vm().migrate.post(target="boreas")) == "OK"
    assert refused(lab.vm().config.get).startswith("Configuration file 'nodes/atlas/")
    lab.finish(lab.vm(node="boreas").status.start.post())
    assert lab.power.on[100].host == "boreas"
    assert lab.power.on[100].image is not None
    assert refused(lambda: lab.vm(node="boreas").migrate.post(target="atlas")).startswith("can't migrate running VM")


def test_the_agent_answers_when_the_guest_runs_one(lab: Site) -> None:
    lab.create()
    agent = lab.vm().agent
    assert refused(agent("network-get-interfaces").get) == "VM 100 is not running"
    lab.finish(lab.vm().status.start.post())
    assert refused(agent.ping.post) == "QEMU guest agent is not running"
    lab.power.agents[100] = ["10.0.0.11/24"]
    assert agent.ping.post() == {"result": {}}
    interface = agent("network-get-interfaces").get()["result"][1]
    assert interface["hardware-address"] == "bc:24:11:00:00:01"
    assert interface["ip-addresses"] == [{"ip-address": "10.0.0.11", "prefix": 24, "ip-address-type": "ipv4"}]
    lab.vm().config.put(agent="enabled=0")
    lab.finish(lab.vm().status.reboot.post())
    assert refused(agent.ping.post) == "No QEMU guest agent configured"


def test_pools_hold_machines(lab: Site) -> None:
    client = lab.client()
    assert client.pools.get() == []
    client.pools.post(poolid="infra", comment="the cluster")
    lab.create(pool="infra")
    (pool,) = client.pools.get(poolid="infra")
    assert [member["id"] for member in pool["members"]] == ["qemu/100"]
    assert client.cluster.resources.get(type="vm")[0]["pool"] == "infra"
    assert refused(lambda: client.pools("infra").delete()).endswith("is not empty")
    client.pools.put(poolid="infra", vms="100", delete=1)
    client.pools("infra").delete()
    assert client.pools.get() == []


def test_lists_show_what_there_is(lab: Site) -> None:
    client = lab.client()
    lab.create()
    kinds = {entry["type"] for entry in client.cluster.resources.get()}
    assert kinds == {"qemu", "node", "storage"}
    assert [host["status"] for host in client.nodes.get()] == ["online", "online"]
    assert [vm["vmid"] for vm in client.nodes("atlas").qemu.get()] == [100]
    assert client.nodes("boreas").qemu.get() == []
    assert [bridge["iface"] for bridge in client.nodes("atlas").network.get(type="bridge")] == ["vmbr0"]
    assert {store["storage"] for store in client.nodes("atlas").storage.get()} == {"local", "local-lvm"}
    assert [store["storage"] for store in client.nodes("atlas").storage.get(content="images")] == ["local-lvm"]
    assert client.nodes("atlas").storage("local").status.get()["type"] == "dir"
    assert {store["storage"] for store in client.storage.get()} == {"local", "local-lvm"}
    assert client.storage("local").get()["path"] == "/var/lib/vz"
    assert client.cluster.status.get()[0]["quorate"] == 1
    assert client.cluster.ha.resources.get() == []
    assert refused(client.cluster.ha.resources("vm:100").get) == "no such resource 'vm:100'"
    assert client.version.get()["release"] == "9.1"
