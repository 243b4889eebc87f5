"""Users and their API tokens."""

from __future__ import annotations

import uuid
from typing import Any

from lab.proxmox.access import StoredToken, User
from lab.proxmox.call import Call
from lab.proxmox.errors import OperationError, ParameterError
from lab.proxmox.route import Route, both, needs, takes
from lab.proxmox.vm_options import split_list


def _shown(token: StoredToken) -> dict[str, Any]:
    comment = {"comment": token.comment} if token.comment else {}
    return {"privsep": int(token.privsep), "expire": token.expire, **comment}


def _user_shown(user: User) -> dict[str, Any]:
    texts = {"comment": user.comment, "email": user.email}
    return {"enable": int(user.enable), "expire": user.expire, **{key: text for key, text in texts.items() if text}}


async def users(call: Call) -> list[dict[str, Any]]:
    """Everybody for those who may see everybody; oneself always."""
    everybody = call.allows("/access/groups", "User.Modify", "Sys.Audit", any_of=True)
    own = call.subject.partition("!")[0]
    found = []
    for userid, user in sorted(call.access.users.items()):
        if everybody or userid == own:
            tokens = [{"tokenid": name, **_shown(token)} for name, token in user.tokens.items()]
            full = {"tokens": tokens} if call.flag("full") else {}
            found.append({"userid": userid, "realm-type": userid.partition("@")[2], **_user_shown(user), **full})
    return found


async def read_user(call: Call) -> dict[str, Any]:
    user = call.access.user(call.params["userid"])
    return {
        **_user_shown(user),
        "groups": [],
        "tokens": {name: _shown(token) for name, token in user.tokens.items()},
    }


async def create_user(call: Call) -> None:
    userid = call.params["userid"]
    if userid in call.access.users:
        raise OperationError(f"create user failed: user '{userid}' already exists")
    if userid.partition("@")[2] not in {"pam", "pve"}:
        raise OperationError(f"create user failed: domain '{userid.partition('@')[2]}' does not exist")
    call.access.users[userid] = User()
    await update_user(call)


async def update_user(call: Call) -> None:
    user = call.access.user(call.params["userid"])
    user.enable = call.flag("enable", default=user.enable)
    user.expire = call.number("expire", user.expire)
    user.comment = call.params.get("comment", user.comment)
    user.email = call.params.get("email", user.email)


async def delete_user(call: Call) -> None:
    userid = call.params["userid"]
    call.access.user(userid)
    del call.access.users[userid]
    call.access.entries = [entry for entry in call.access.entries if entry.subject.partition("!")[0] != userid]


async def tokens(call: Call) -> list[dict[str, Any]]:
    user = call.access.user(call.params["userid"])
    return [{"tokenid": name, **_shown(token)} for name, token in sorted(user.tokens.items())]


async def read_token(call: Call) -> dict[str, Any]:
    return _shown(call.access.token(call.params["userid"], call.params["tokenid"]))


async def create_token(call: Call) -> dict[str, Any]:
    userid, name = call.params["userid"], call.params["tokenid"]
    if name in call.access.user(userid).tokens:
        raise ParameterError(tokenid="Token already exists.")
    token = StoredToken(
        secret=str(uuid.uuid4()),
        privsep=call.flag("privsep", default=True),
        expire=call.number("expire", 0),
        comment=call.params.get("comment", ""),
    )
    call.access.users[userid].tokens[name] = token
    return {"full-tokenid": f"{userid}!{name}", "value": token.secret, "info": _shown(token)}


async def update_token(call: Call) -> dict[str, Any]:
    userid, name = call.params["userid"], call.params["tokenid"]
    old = call.access.token(userid, name)
    cleared = {"comment": ""} if "comment" in split_list(call.params.get("delete", "")) else {}
    fresh = {"secret": str(uuid.uuid4())} if call.flag("regenerate") else {}
    token = call.access.replace_token(
        userid,
        name,
        privsep=call.flag("privsep", default=old.privsep),
        expire=call.number("expire", old.expire),
        **{"comment": call.params.get("comment", old.comment), **cleared, **fresh},
    )
    shown = {"value": token.secret, "full-tokenid": f"{userid}!{name}"} if fresh else {}
    return _shown(token) | shown


async def delete_token(call: Call) -> None:
    userid, name = call.params["userid"], call.params["tokenid"]
    call.access.token(userid, name)
    del call.access.users[userid].tokens[name]
    call.access.entries = [entry for entry in call.access.entries if entry.subject != f"{userid}!{name}"]


def _own_or_modify(call: Call) -> None:
    """A user manages its own tokens; a token is not its user."""
    if call.params["userid"] != call.subject:
        call.check("/access/groups", "User.Modify")


def _realm(call: Call) -> None:
    call.check(f"/access/realm/{call.params['userid'].partition('@')[2]}", "Realm.AllocateUser")


_MODIFY = needs("/access/groups", "User.Modify")
_TOKEN = "/access/users/{userid}/token/{tokenid}"
_USER = "/access/users/{userid}"
_FIELDS = "comment email enable:boolean expire:integer"

ROUTES = (
    Route(method="GET", path="/access/users", handler=users, parameters=takes("enabled:boolean full:boolean")),
    Route(
        method="POST",
        path="/access/users",
        handler=create_user,
        permission=both(_realm, _MODIFY),
        parameters=takes(f"userid! {_FIELDS}"),
    ),
    Route(
        method="GET",
        path=_USER,
        handler=read_user,
        permission=needs("/access/groups", "User.Modify", "Sys.Audit", any_of=True),
    ),
    Route(method="PUT", path=_USER, handler=update_user, permission=_MODIFY, parameters=takes(_FIELDS)),
    Route(method="DELETE", path=_USER, handler=delete_user, permission=both(_realm, _MODIFY)),
    Route(method="GET", path=f"{_USER}/token", handler=tokens, permission=_own_or_modify),
    Route(method="GET", path=_TOKEN, handler=read_token, permission=_own_or_modify),
    Route(
        method="POST",
        path=_TOKEN,
        handler=create_token,
        permission=_own_or_modify,
        parameters=takes("comment expire:integer privsep:boolean"),
    ),
    Route(
        method="PUT",
        path=_TOKEN,
        handler=update_token,
        permission=_own_or_modify,
        parameters=takes("comment delete expire:integer privsep:boolean regenerate:boolean"),
    ),
    Route(method="DELETE", path=_TOKEN, handler=delete_token, permission=_own_or_modify),
)
