"""The privileges and built-in roles of Proxmox VE 9."""

from __future__ import annotations

from types import MappingProxyType

# Per family: what only the administrator has, what the family's admin has, its user, its auditor.
_FAMILIES: dict[str, tuple[str, str, str, str]] = {
    "VM": (
        "",
        "VM.Config.Disk VM.Config.CPU VM.Config.Memory VM.Config.Network VM.Config.HWType VM.Config.Options"
        " VM.Allocate VM.Clone VM.GuestAgent.Unrestricted VM.Migrate VM.Replicate VM.Snapshot VM.Snapshot.Rollback",
        "VM.Config.CDROM VM.Config.Cloudinit VM.Console VM.Backup VM.GuestAgent.FileRead"
        " VM.GuestAgent.FileSystemMgmt VM.GuestAgent.FileWrite VM.PowerMgmt",
        "VM.Audit VM.GuestAgent.Audit",
    ),
    "Sys": ("Sys.PowerMgmt Sys.Modify Sys.Incoming Sys.AccessNetwork", "Sys.Console Sys.Syslog", "", "Sys.Audit"),
    "Datastore": (
        "",
        "Datastore.Allocate Datastore.AllocateTemplate",
        "Datastore.AllocateSpace",
        "Datastore.Audit",
    ),
    "SDN": ("", "SDN.Allocate SDN.Audit", "SDN.Use", "SDN.Audit"),
    "User": ("Realm.Allocate", "User.Modify Group.Allocate Realm.AllocateUser", "", ""),
    "Pool": ("", "Pool.Allocate", "Pool.Audit", "Pool.Audit"),
    "Mapping": ("", "Mapping.Modify", "Mapping.Use", "Mapping.Audit"),
}


def _all() -> frozenset[str]:
    named = {privilege for family in _FAMILIES.values() for words in family for privilege in words.split()}
    return frozenset(named | {"Permissions.Modify"})


def _roles() -> dict[str, frozenset[str]]:
    roles: dict[str, set[str]] = {"PVEAdmin": set(), "PVEAuditor": set()}
    for family, (_, admin, user, audit) in _FAMILIES.items():
        administers = {*admin.split(), *user.split(), *audit.split()}
        roles[f"PVE{family}Admin"] = administers
        roles["PVEAdmin"] |= administers
        roles["PVEAuditor"] |= set(audit.split())
        if user:
            roles[f"PVE{family}User"] = {*user.split(), *audit.split()}
    roles["PVEAdmin"].discard("Mapping.Modify")
    roles["PVETemplateUser"] = {"VM.Clone", "VM.Audit"}
    return {"NoAccess": frozenset(), "Administrator": PRIVILEGES} | {
        name: frozenset(privileges) for name, privileges in roles.items()
    }


PRIVILEGES = _all()
BUILT_IN_ROLES = MappingProxyType(_roles())
