"""Tokens, privileges and roles on the emulated Proxmox."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from proxmoxer import ProxmoxAPI, ResourceException

from lab.faults import Fault
from lab.proxmox import Grant, Token
from tests.proxmox_site import ADMIN, FILE, IMAGE, SECRET, VM, Site, site

CARETAKER = "caretaker@pve!lab"
PROVISIONER = "provisioner@pve!lab"
SEPARATED = "separated@pve!lab"
BUILD = (
    "VM.Allocate VM.Audit VM.Config.CPU VM.Config.Memory VM.Config.Disk VM.Config.Network VM.Config.HWType"
    " VM.Config.Options VM.Config.Cloudinit VM.PowerMgmt"
)
ROLES = {
    "Build": BUILD.split(),
    "Space": ["Datastore.AllocateSpace", "Datastore.Audit"],
    "Images": ["Datastore.AllocateTemplate", "Datastore.Audit"],
    "Reach": ["Sys.AccessNetwork"],
    "Bridge": ["SDN.Use"],
}
GRANTS = [
    Grant(path="/vms", role="Build"),
    Grant(path="/storage/local-lvm", role="Space"),
    Grant(path="/storage/local", role="Images"),
    Grant(path="/nodes", role="Reach"),
    Grant(path="/sdn/zones/localnetwork/vmbr0", role="Bridge"),
]


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Site]:
    tokens = {
        CARETAKER: Token(secret=SECRET, grants=[Grant(path="/vms/100", role="PVEVMUser")]),
        PROVISIONER: Token(secret=SECRET, grants=GRANTS),
        SEPARATED: Token(secret=SECRET, grants=[Grant(path="/", role="PVEAuditor")], privilege_separation=True),
    }
    with site(tmp_path, tokens, ROLES) as running:
        yield running


def refused(call: Any, status: int) -> str:
    with pytest.raises(ResourceException) as caught:
        call()
    assert caught.value.status_code == status
    return str(caught.value.content)


def provision(lab: Site, **changes: Any) -> str:
    client = lab.client(PROVISIONER)
    target = client.nodes("atlas").storage("local")("download-url")
    assert lab.finish(target.post(url=IMAGE, filename="talos.qcow2", content="import"), client) == "OK"
    return lab.finish(client.nodes("atlas").qemu.post(**{**VM, **changes}), client)


def test_a_token_is_known_by_all_its_parts(lab: Site) -> None:
    assert refused(lab.client(ADMIN, "wrong").version.get, 401) == "invalid token value!"
    assert refused(lab.client("admin@pve!other").version.get, 401) == "no such token 'other' for user 'admin@pve'"
    assert refused(lab.client("nobody@pve!lab").version.get, 401) == "no such user ('nobody@pve')"
    assert lab.client().version.get()["version"].startswith("9.1.")


def test_an_expired_token_is_refused_and_no_other(lab: Site) -> None:
    lab.faults.add(Fault(name="token-expired", node=PROVISIONER))
    assert refused(lab.client(PROVISIONER).version.get, 401) == "token 'lab' access expired"
    assert lab.client().version.get()


def test_the_listed_privileges_are_enough_to_provision(lab: Site) -> None:
    assert provision(lab) == "OK"
    client = lab.client(PROVISIONER)
    assert lab.finish(lab.vm(client=client).resize.put(disk="scsi0", size="20G"), client) == "OK"
    assert lab.finish(lab.vm(client=client).status.start.post(), client) == "OK"
    assert 100 in lab.power.on


@pytest.mark.parametrize(
    ("privilege", "message"),
    [
        ("VM.Allocate", "Permission check failed"),
        ("VM.Config.Memory", "Permission check failed (/vms/100, VM.Config.Memory)"),
        ("VM.Config.HWType", "Permission check failed (/vms/100, VM.Config.HWType)"),
        ("SDN.Use", "Permission check failed (/sdn/zones/localnetwork/vmbr0/11, SDN.Use)"),
        ("Datastore.AllocateSpace", "Permission check failed (/storage/local-lvm, Datastore.AllocateSpace)"),
        ("Datastore.AllocateTemplate", "Permission check failed (/storage/local, Datastore.AllocateTemplate)"),
        ("Sys.AccessNetwork", "Permission check failed (/nodes/atlas, Sys.AccessNetwork)"),
    ],
)
def test_each_of_them_is_needed(lab: Site, privilege: str, message: str) -> None:
    lab.faults.add(Fault(name="missing-privilege", node=PROVISIONER, options={"privilege": privilege}))
    assert refused(lambda: provision(lab), 403) == message


def test_a_missing_privilege_shows_in_the_permissions(lab: Site) -> None:
    lab.faults.add(Fault(name="missing-privilege", options={"privilege": "VM.PowerMgmt"}))
    held = lab.client(PROVISIONER).access.permissions.get()
    assert set(held["/vms"]) == set(BUILD.split()) - {"VM.PowerMgmt"}


def test_permissions_are_listed_by_path(lab: Site) -> None:
    held = lab.client(PROVISIONER).access.permissions.get()
    assert held["/storage/local"] == {"Datastore.AllocateTemplate": 1, "Datastore.Audit": 1}
    assert "/" not in held
    (answer,) = lab.client(PROVISIONER).access.permissions.get(path="/vms/4711").values()
    assert set(answer) == set(BUILD.split())


def test_rights_on_one_machine_end_there(lab: Site) -> None:
    assert provision(lab) == "OK"
    caretaker = lab.client(CARETAKER)
    assert [vm["vmid"] for vm in caretaker.cluster.resources.get(type="vm")] == [100]
    assert lab.finish(lab.vm(client=caretaker).status.start.post(), caretaker) == "OK"
    assert refused(lab.vm(client=caretaker).delete, 403) == "Permission check failed (/vms/100, VM.Allocate)"
    elsewhere = lab.vm(101, client=caretaker)
    assert refused(elsewhere.status.current.get, 403) == "Permission check failed (/vms/101, VM.Audit)"
    assert refused(lambda: elsewhere.config.put(cores=4), 403).startswith("Permission check failed (/vms/101, VM.Conf")
    assert caretaker.nodes("atlas").storage.get() == []


def test_other_peoples_tasks_need_a_privilege(lab: Site) -> None:
    assert lab.download() == "OK"
    (task,) = lab.client().nodes("atlas").tasks.get()
    stranger: ProxmoxAPI = lab.client(CARETAKER)
    assert refused(stranger.nodes("atlas").tasks(task["upid"]).status.get, 403).endswith("Sys.Audit)")
    assert stranger.nodes("atlas").tasks.get() == []


def test_options_with_a_privilege_of_their_own(lab: Site) -> None:
    assert provision(lab) == "OK"
    config = lab.vm(client=lab.client(PROVISIONER)).config
    assert refused(lambda: config.put(args="-device x"), 500) == "only root can set 'args' config"
    assert refused(lambda: config.put(serial0="/dev/ttyS0"), 500) == "only root can set 'serial0' config"
    assert refused(lambda: config.put(ide2="none,media=cdrom"), 403).endswith("VM.Config.CDROM)")
    assert refused(lambda: config.put(ide3="cdrom,media=cdrom"), 403) == "Permission check failed (/, Sys.Console)"
    config.put(serial0="socket")
    assert config.get()["serial0"] == "socket"


def test_a_separated_token_has_no_more_than_it_was_given(lab: Site) -> None:
    client = lab.client()
    assert lab.client(SEPARATED).nodes("atlas").qemu.get() == []
    client.access.acl.put(path="/", roles="Administrator", users="separated@pve")
    assert refused(lambda: lab.client(SEPARATED).pools.post(poolid="x"), 403).endswith("Pool.Allocate)")
    client.access.acl.put(path="/", roles="Administrator", tokens=SEPARATED)
    lab.client(SEPARATED).pools.post(poolid="x")


def test_the_nearest_entry_wins(lab: Site) -> None:
    client = lab.client()
    client.access.acl.put(path="/vms/100", roles="NoAccess", users="provisioner@pve")
    client.access.acl.put(path="/vms/101", roles="PVEVMUser", users="provisioner@pve", propagate=0)
    held = lab.client(PROVISIONER).access.permissions
    assert held.get(path="/vms/100") == {"/vms/100": {}}
    assert held.get(path="/vms/101")["/vms/101"]["VM.PowerMgmt"] == 0
    assert "VM.Allocate" not in held.get(path="/vms/101")["/vms/101"]
    client.access.acl.put(path="/vms/100", roles="NoAccess", users="provisioner@pve", delete=1)
    assert "VM.Allocate" in held.get(path="/vms/100")["/vms/100"]


def test_a_pool_passes_its_roles_on(lab: Site) -> None:
    assert provision(lab) == "OK"
    client = lab.client()
    client.pools.post(poolid="shared")
    client.pools("shared").put(vms="100")
    client.access.acl.put(path="/pool/shared", roles="PVEAuditor", users="separated@pve", tokens=SEPARATED)
    client.access.acl.put(path="/", roles="PVEAuditor", users="separated@pve", tokens=SEPARATED, delete=1)
    assert [vm["vmid"] for vm in lab.client(SEPARATED).nodes("atlas").qemu.get()] == [100]


def test_credentials_for_another_program(lab: Site) -> None:
    """Role, user, token, entries: what storage drivers are given."""
    access = lab.client().access
    access.roles.post(roleid="CSI", privs="VM.Audit,VM.Config.Disk,Datastore.Allocate")
    access.roles("CSI").put(privs="Datastore.Audit", append=1)
    access.users.post(userid="csi@pve", comment="storage driver")
    made = access.users("csi@pve").token("driver").post(privsep=0)
    access.acl.put(path="/storage/local-lvm", roles="CSI", users="csi@pve")
    assert made["full-tokenid"] == "csi@pve!driver"
    driver = lab.client("csi@pve!driver", made["value"])
    assert [store["storage"] for store in driver.nodes("atlas").storage.get()] == ["local-lvm"]
    assert set(access.roles("CSI").get()) == {"VM.Audit", "VM.Config.Disk", "Datastore.Allocate", "Datastore.Audit"}
    assert access.users("csi@pve").get()["tokens"]["driver"]["privsep"] == 0
    assert access.users("csi@pve").token("driver").get()["expire"] == 0
    assert "value" not in access.users("csi@pve").token.get()[0]
    renewed = access.users("csi@pve").token("driver").put(regenerate=1)
    assert refused(driver.version.get, 401) == "invalid token value!"
    assert lab.client("csi@pve!driver", renewed["value"]).version.get()
    access.users("csi@pve").put(enable=0)
    assert refused(lab.client("csi@pve!driver", renewed["value"]).version.get, 401) == "user 'csi@pve' is disabled"
    access.users("csi@pve").token("driver").delete()
    access.users("csi@pve").delete()
    access.roles("CSI").delete()
    assert [entry for entry in access.acl.get() if entry["ugid"].startswith("csi")] == []


def test_managing_access_is_a_privilege_too(lab: Site) -> None:
    access = lab.client(PROVISIONER).access
    assert refused(lambda: access.roles.post(roleid="X"), 403) == "Permission check failed (/access, Sys.Modify)"
    assert refused(lambda: access.users.post(userid="x@pve"), 403).endswith("/access/realm/pve, Realm.AllocateUser)")
    assert refused(lambda: access.acl.put(path="/", roles="PVEAuditor", users="x@pve"), 403).endswith(
        "(/, Permissions.Modify)"
    )
    assert [user["userid"] for user in access.users.get()] == ["provisioner@pve"]
    assert access.acl.get() == []


def test_built_in_roles_are_there_and_stay(lab: Site) -> None:
    access = lab.client().access
    roles = {role["roleid"]: role for role in access.roles.get()}
    assert roles["PVEDatastoreUser"]["privs"] == "Datastore.AllocateSpace,Datastore.Audit"
    assert "VM.GuestAgent.Audit" in roles["PVEAuditor"]["privs"]
    assert "VM.Monitor" not in roles["Administrator"]["privs"]
    assert refused(access.roles("PVEVMAdmin").delete, 500).startswith("auto-generated role")
    assert refused(lambda: access.roles.post(roleid="X", privs="VM.Monitor"), 500) == "invalid privilege 'VM.Monitor'"


def test_an_import_needs_read_access_to_its_source(lab: Site) -> None:
    assert lab.download() == "OK"
    lab.faults.add(Fault(name="missing-privilege", node=PROVISIONER, options={"privilege": "Datastore.Audit"}))
    disk = f"local-lvm:0,import-from={FILE}"
    message = refused(lambda: lab.client(PROVISIONER).nodes("atlas").qemu.post(vmid=100, scsi0=disk), 403)
    assert message == "Permission check failed (/storage/local, Datastore.AllocateSpace|Datastore.Audit)"
