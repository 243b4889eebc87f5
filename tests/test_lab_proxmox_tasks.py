"""Tasks, downloads, storage locks and the faults that strike them on the emulated Proxmox."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from proxmoxer import ResourceException

from lab.faults import Fault
from tests.proxmox_site import ADMIN, FILE, IMAGE, IMAGE_SIZE, VM, Site, site, until


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Site]:
    with site(tmp_path) as running:
        yield running


def refused(call: Any, status: int = 500) -> ResourceException:
    with pytest.raises(ResourceException) as caught:
        call()
    assert caught.value.status_code == status
    return caught.value


def content(lab: Site, node: str = "atlas") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = lab.client().nodes(node).storage("local").content.get(content="import")
    return found


def test_a_task_is_known_by_its_upid(lab: Site) -> None:
    upid = lab.client().nodes("atlas").storage("local")("download-url").post(
        url=IMAGE, filename="talos.qcow2", content="import"
    )  # fmt: skip
    kind, node, *numbers, name, subject, user, end = upid.split(":")
    assert (kind, node, name, subject, user, end) == ("UPID", "atlas", "download", "talos.qcow2", ADMIN, "")
    assert all(int(number, 16) for number in numbers)
    assert lab.finish(upid) == "OK"
    lines = lab.client().nodes("atlas").tasks(upid).log.get()
    assert [line["n"] for line in lines] == list(range(1, len(lines) + 1))
    assert lines[-1]["t"] == "TASK OK"
    assert lab.client().nodes("atlas").tasks.get()[0]["status"] == "OK"


def test_a_slow_task_runs_until_it_ends(lab: Site) -> None:
    lab.faults.add(Fault(name="task-slow", node="atlas", options={"seconds": "30"}))
    upid = lab.client().nodes("atlas").qemu.post(vmid=100)
    task = lab.client().nodes("atlas").tasks(upid)
    assert task.status.get()["status"] == "running"
    assert lab.vm().status.current.get()["lock"] == "create"
    lab.faults.remove("task-slow")
    assert lab.finish(upid) == "OK"


def test_a_task_can_be_stopped(lab: Site) -> None:
    lab.faults.add(Fault(name="task-slow", node="atlas", options={"seconds": "30"}))
    upid = lab.client().nodes("atlas").qemu.post(vmid=100)
    lab.client().nodes("atlas").tasks(upid).delete()
    assert lab.finish(upid) == "received interrupt"


def test_a_locked_machine_is_left_alone(lab: Site) -> None:
    lab.create(scsi0="local-lvm:10")
    lab.hypervisor.vms[100].lock = "backup"
    assert str(refused(lambda: lab.vm().config.put(cores=4)).content) == "VM is locked (backup)"
    assert lab.finish(lab.vm().resize.put(disk="scsi0", size="20G")) == "VM is locked (backup)"
    assert lab.finish(lab.vm().status.start.post()) == "VM is locked (backup)"
    assert lab.finish(lab.vm().delete()) == "VM is locked (backup)"


def test_unknown_tasks(lab: Site) -> None:
    tasks = lab.client().nodes("atlas").tasks
    refused(tasks("nonsense").status.get, 400)
    assert refused(tasks("UPID:atlas:00000001:00000001:00000001:x::a@pve:").status.get).content == "no such task"


def test_a_download_is_listed_and_deleted(lab: Site) -> None:
    facts = lab.client().nodes("atlas")("query-url-metadata").get(url=IMAGE, **{"verify-certificates": 1})
    assert facts == {"filename": "nocloud-amd64.qcow2", "mimetype": "application/octet-stream", "size": IMAGE_SIZE}
    assert lab.download() == "OK"
    (entry,) = content(lab)
    assert (entry["volid"], entry["content"], entry["format"], entry["size"]) == (FILE, "import", "qcow2", IMAGE_SIZE)
    assert content(lab, "boreas") == []
    volume = lab.client().nodes("atlas").storage("local").content(FILE)
    assert volume.get()["path"] == "/var/lib/vz/import/talos.qcow2"
    assert lab.download() == "refusing to override existing file '/var/lib/vz/import/talos.qcow2'"
    assert lab.finish(volume.delete()) == "OK"
    assert content(lab) == []
    assert "does not exist" in str(refused(volume.get).content)


@pytest.mark.parametrize("filename", ["talos.raw.xz", "talos.img", "talos", "ta los.raw"])
def test_only_disk_images_can_be_imported(lab: Site, filename: str) -> None:
    with pytest.raises(ResourceException) as caught:
        lab.download(filename=filename)
    assert caught.value.status_code == 400
    assert caught.value.errors == {"filename": "invalid filename or wrong extension"}


def test_a_download_needs_a_fitting_storage(lab: Site) -> None:
    storage = lab.client().nodes("atlas").storage
    asked = {"url": IMAGE, "filename": "talos.qcow2", "content": "import"}
    assert "not a file based storage" in str(
        refused(lambda: storage("local-lvm")("download-url").post(**asked)).content
    )
    assert "does not exist" in str(refused(lambda: storage("other")("download-url").post(**asked)).content)


def test_what_is_not_on_the_internet_cannot_be_downloaded(lab: Site) -> None:
    missing = "https://nowhere.example/talos.qcow2"
    assert lab.download(url=missing) == "download failed: exit code 8"
    answer = refused(lambda: lab.client().nodes("atlas")("query-url-metadata").get(url=missing))
    assert answer.content == "invalid server response: '404 Not Found'"


def test_a_download_that_fails_leaves_nothing(lab: Site) -> None:
    lab.faults.add(Fault(name="image-download-fails", node="atlas"))
    assert lab.download() == "download failed: exit code 4"
    assert content(lab) == []
    assert lab.download("boreas") == "OK"


def test_a_truncated_image_is_smaller_and_known_at_boot(lab: Site) -> None:
    lab.faults.add(Fault(name="image-truncated"))
    assert lab.download() == "OK"
    assert content(lab)[0]["size"] == IMAGE_SIZE // 2
    lab.create()
    lab.finish(lab.vm().status.start.post())
    image = lab.power.on[100].image
    assert image is not None
    assert not image.whole


def test_a_storage_lock_held_too_long_fails_and_leaves_nothing(lab: Site) -> None:
    assert lab.download() == "OK"
    lab.hypervisor.hosts["atlas"].datastores["local-lvm"].lock_seconds = 0.01
    lab.faults.add(Fault(name="storage-lock-timeout", node="atlas"))
    outcome = lab.create()
    assert outcome == (
        "unable to create VM 100 - can't lock file '/var/lock/pve-manager/pve-storage-local-lvm' - got timeout"
    )
    assert lab.client().cluster.resources.get(type="vm") == []


def test_a_storage_lock_given_back_in_time_is_only_a_wait(lab: Site) -> None:
    assert lab.download() == "OK"
    lab.faults.add(Fault(name="storage-lock-timeout", node="atlas"))
    upid = lab.client().nodes("atlas").qemu.post(**VM)
    status = lab.client().nodes("atlas").tasks(upid).status
    assert status.get()["status"] == "running"
    lab.faults.remove("storage-lock-timeout")
    assert lab.finish(upid) == "OK"


def test_a_full_storage(lab: Site) -> None:
    lab.faults.add(Fault(name="storage-full", node="atlas"))
    assert lab.download() == "error during write: No space left on device"
    assert "Cannot create new thin volume" in lab.create(scsi0="local-lvm:10")
    assert lab.client().nodes("atlas").storage("local").status.get()["avail"] == 0


def test_a_failed_creation_frees_what_it_had_made(lab: Site) -> None:
    outcome = lab.create(scsi0="local-lvm:10", scsi1=f"local-lvm:0,import-from={FILE}")
    assert outcome.endswith("does not exist")
    assert lab.client().nodes("atlas").storage("local-lvm").content.get() == []


def test_a_failing_host_fails_alone(lab: Site) -> None:
    lab.faults.add(Fault(name="proxmox-5xx", node="atlas"))
    answer = refused(lab.client().nodes("atlas").qemu.get)
    assert answer.content == "ipcc_send_rec[1] failed: Connection refused"
    assert lab.client().nodes("boreas").qemu.get() == []
    assert lab.client().version.get()
    lab.faults.remove("proxmox-5xx")
    lab.faults.add(Fault(name="proxmox-5xx", options={"status": "503"}))
    refused(lab.client().version.get, 503)


def test_parameters_are_verified_all_at_once(lab: Site) -> None:
    answer = refused(lambda: lab.client().nodes("atlas").qemu.post(name="a_b", cores="two", onboot="maybe"), 400)
    assert answer.errors == {"vmid": "property is missing and it is not optional"}
    answer = refused(
        lambda: lab.client().nodes("atlas").qemu.post(vmid=100, name="a_b", cores="two", onboot="maybe", bios="x"), 400
    )
    assert set(answer.errors) == {"name", "cores", "onboot", "bios"}
    answer = refused(lambda: lab.client().nodes("atlas").qemu.post(vmid=100, colour="red"), 400)
    assert "not defined in schema" in answer.errors["colour"]


@pytest.mark.parametrize(
    "options",
    [
        {"net0": "virtio,bridge=vmbr0,colour=red"},
        {"net0": "bridge=vmbr0"},
        {"net0": "virtio,tag=5000"},
        {"net0": "virtio=nonsense"},
        {"ipconfig0": "gw=10.0.0.1"},
        {"ipconfig0": "ip=10.0.0.300/24"},
        {"scsi0": "local-lvm:10,colour=red"},
        {"scsi0": "local-lvm:10,size=10G,size=11G"},
        {"scsi0": "local-lvm:10,import-from=local:iso/x.iso"},
    ],
)
def test_option_strings_are_verified(lab: Site, options: dict[str, str]) -> None:
    answer = refused(lambda: lab.client().nodes("atlas").qemu.post(vmid=100, **options), 400)
    assert list(answer.errors) == list(options)


def test_unknown_hosts_are_refused(lab: Site) -> None:
    assert str(refused(lab.client().nodes("zeus").qemu.get).content).startswith("hostname lookup 'zeus' failed")
    until(lambda: lab.log.entries()[-1]["status"] == 500)


def test_a_tagged_configuration_is_not_overwritten(lab: Site) -> None:
    lab.create(scsi0="local-lvm:10")
    digest = lab.vm().config.get()["digest"]
    lab.vm().config.put(cores=4, digest=digest)
    assert str(refused(lambda: lab.vm().config.put(cores=5, digest=digest)).content).startswith("checksum mismatch")
