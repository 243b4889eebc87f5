"""Roles, the access control list, and what a token may do."""

from __future__ import annotations

from typing import Any

from lab.proxmox.access import Entry
from lab.proxmox.call import Call
from lab.proxmox.errors import OperationError, ParameterError
from lab.proxmox.privileges import BUILT_IN_ROLES, PRIVILEGES
from lab.proxmox.route import Route, needs, takes
from lab.proxmox.vm_options import split_list

_TOP_PATHS = ("/", "/access", "/access/groups", "/nodes", "/pool", "/sdn", "/storage", "/vms")


async def roles(call: Call) -> list[dict[str, Any]]:
    return [
        {"roleid": name, "privs": ",".join(sorted(held)), "special": int(name in BUILT_IN_ROLES)}
        for name, held in sorted(call.access.roles.items())
    ]


async def role(call: Call) -> dict[str, int]:
    return dict.fromkeys(sorted(_role(call)), 1)


def _role(call: Call) -> frozenset[str]:
    name = call.params["roleid"]
    if name not in call.access.roles:
        raise OperationError(f"role '{name}' does not exist")
    return call.access.roles[name]


def _privileges(call: Call) -> frozenset[str]:
    named = split_list(call.params.get("privs", ""))
    unknown = [privilege for privilege in named if privilege not in PRIVILEGES]
    if unknown:
        raise OperationError(f"invalid privilege '{unknown[0]}'")
    return frozenset(named)


async def create_role(call: Call) -> None:
    name = call.params["roleid"]
    if name.startswith("PVE"):
        raise ParameterError(roleid="cannot use role ID starting with the (case-insensitive) 'PVE' namespace")
    if name in call.access.roles:
        raise OperationError(f"create role failed: role '{name}' already exists")
    call.access.roles[name] = _privileges(call)


async def update_role(call: Call) -> None:
    _refuse_built_in(call, "modified")
    kept = _role(call) if call.flag("append") else frozenset()
    call.access.roles[call.params["roleid"]] = kept | _privileges(call)


async def delete_role(call: Call) -> None:
    _refuse_built_in(call, "deleted")
    _role(call)
    del call.access.roles[call.params["roleid"]]


def _refuse_built_in(call: Call, verb: str) -> None:
    name = call.params["roleid"]
    if name in BUILT_IN_ROLES:
        raise OperationError(f"auto-generated role '{name}' cannot be {verb}")


async def entries(call: Call) -> list[dict[str, Any]]:
    audited = call.allows("/access", "Sys.Audit")
    return [
        {
            "path": entry.path,
            "type": "token" if "!" in entry.subject else "user",
            "ugid": entry.subject,
            "roleid": entry.role,
            "propagate": int(entry.propagate),
        }
        for entry in call.access.entries
        if audited or call.allows(entry.path, "Permissions.Modify")
    ]


async def update_entries(call: Call) -> None:
    path = "/" + "/".join(part for part in call.params["path"].split("/") if part)
    for subject in _subjects(call):
        for name in split_list(call.params["roles"]):
            if name not in call.access.roles:
                raise OperationError(f"update ACL failed: role '{name}' does not exist")
            _check_handing_out(call, path, name)
            entry = Entry(path=path, subject=subject, role=name, propagate=call.flag("propagate", default=True))
            (call.access.revoke if call.flag("delete") else call.access.grant)(entry)


def _subjects(call: Call) -> list[str]:
    users, tokens = split_list(call.params.get("users", "")), split_list(call.params.get("tokens", ""))
    if not users and not tokens:
        missing = "either 'users', 'groups' or 'tokens' is required."
        raise ParameterError(users=missing, groups=missing, tokens=missing)
    for user in users:
        call.access.user(user)
    for token in tokens:
        call.access.token(token.partition("!")[0], token.partition("!")[2])
    return users + tokens


def _check_handing_out(call: Call, path: str, role_name: str) -> None:
    """Without Permissions.Modify nobody hands out more than they hold."""
    held = call.access.privileges(call.subject, path)
    if "Permissions.Modify" not in held and (
        role_name == "NoAccess" or not call.access.roles[role_name] <= held.keys()
    ):
        verb = "remove" if call.flag("delete") else "add"
        needed = "requires 'Permissions.Modify' or superset of privileges."
        raise ParameterError(role=f"Cannot {verb} role '{role_name}' - {needed}")


def _may_modify(call: Call) -> None:
    """On machines, storages and pools their own allocation privilege is enough."""
    path = call.params["path"]
    instead = {"/storage/": "Datastore.Allocate", "/vms/": "VM.Allocate", "/pool/": "Pool.Allocate"}
    enough = [privilege for prefix, privilege in instead.items() if path.startswith(prefix)]
    call.access.check_any(call.subject, path, "Permissions.Modify", *enough)


async def permissions(call: Call) -> dict[str, dict[str, int]]:
    subject = call.params.get("userid", call.subject)
    if subject != call.subject and not subject.startswith(f"{call.subject}!"):
        call.check("/access", "Sys.Audit")
    paths = [call.params["path"]] if "path" in call.params else _all_paths(call)
    held = {path: call.access.privileges(subject, path) for path in paths}
    return {
        path: {privilege: int(spread) for privilege, spread in sorted(privileges.items())}
        for path, privileges in held.items()
        if privileges or "path" in call.params
    }


def _all_paths(call: Call) -> list[str]:
    listed = {entry.path for entry in call.access.entries}
    for pool in call.hypervisor.pools.values():
        listed |= {f"/vms/{vmid}" for vmid in pool.vms} | {f"/storage/{name}" for name in pool.storages}
    return sorted({*_TOP_PATHS, *listed})


_MAY_MODIFY_ROLES = needs("/access", "Sys.Modify")

ROUTES = (
    Route(method="GET", path="/access/roles", handler=roles),
    Route(
        method="POST",
        path="/access/roles",
        handler=create_role,
        permission=_MAY_MODIFY_ROLES,
        parameters=takes("roleid! privs"),
    ),
    Route(method="GET", path="/access/roles/{roleid}", handler=role),
    Route(
        method="PUT",
        path="/access/roles/{roleid}",
        handler=update_role,
        permission=_MAY_MODIFY_ROLES,
        parameters=takes("privs append:boolean"),
    ),
    Route(method="DELETE", path="/access/roles/{roleid}", handler=delete_role, permission=_MAY_MODIFY_ROLES),
    Route(method="GET", path="/access/acl", handler=entries),
    Route(
        method="PUT",
        path="/access/acl",
        handler=update_entries,
        permission=_may_modify,
        parameters=takes("path! roles! users groups tokens propagate:boolean delete:boolean"),
    ),
    Route(method="GET", path="/access/permissions", handler=permissions, parameters=takes("path userid")),
)
