"""Users, API tokens, roles and the access control list, and what they add up to on a path."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lab.faults import Faults
from lab.proxmox.errors import AuthenticationError, OperationError, PermissionDeniedError
from lab.proxmox.privileges import BUILT_IN_ROLES, PRIVILEGES

ROOT = "root@pam"
_HEADER = re.compile(r"^PVEAPIToken=(?P<user>[^!=\s]+@[^!=\s]+)!(?P<name>[^=\s]+)=(?P<secret>.+)$")


@dataclass(frozen=True, kw_only=True)
class Grant:
    """A role on a path; below it too, when it propagates."""

    path: str
    role: str
    propagate: bool = True


@dataclass(frozen=True, kw_only=True)
class Token:
    """An API token that exists from the start, with what its user may do."""

    secret: str = field(repr=False)
    grants: Sequence[Grant] = (Grant(path="/", role="Administrator"),)
    privilege_separation: bool = False
    """True gives the token the grants as well: it has the intersection of its own and its user's."""


@dataclass(frozen=True, kw_only=True)
class StoredToken:
    secret: str = field(repr=False)
    privsep: bool = True
    expire: int = 0
    comment: str = ""


@dataclass(kw_only=True)
class User:
    enable: bool = True
    expire: int = 0
    comment: str = ""
    email: str = ""
    tokens: dict[str, StoredToken] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One line of the access control list."""

    path: str
    subject: str
    """A user id, or a full token id."""
    role: str
    propagate: bool


PoolRoles = Callable[[str], Sequence[str]]
"""The pools that hold the object at a path, such as /vms/100."""


class Access:
    def __init__(self, tokens: Mapping[str, Token], roles: Mapping[str, Sequence[str]], faults: Faults) -> None:
        self.roles = {**BUILT_IN_ROLES, **{name: frozenset(held) for name, held in roles.items()}}
        self.users: dict[str, User] = {ROOT: User()}
        self.entries: list[Entry] = []
        self.pools_of: PoolRoles = lambda _path: ()
        self._faults = faults
        for identity, token in tokens.items():
            self._admit(identity, token)

    def _admit(self, identity: str, token: Token) -> None:
        user, _, name = identity.partition("!")
        self.users.setdefault(user, User()).tokens[name] = StoredToken(
            secret=token.secret, privsep=token.privilege_separation
        )
        subjects = (user, identity) if token.privilege_separation else (user,)
        for grant in token.grants:
            for subject in subjects:
                self.grant(Entry(path=grant.path, subject=subject, role=grant.role, propagate=grant.propagate))

    def grant(self, entry: Entry) -> None:
        self.revoke(entry)
        self.entries.append(entry)

    def revoke(self, entry: Entry) -> None:
        same = (entry.path, entry.subject, entry.role)
        self.entries = [other for other in self.entries if (other.path, other.subject, other.role) != same]

    def authenticate(self, header: str | None) -> str:
        """The full token id behind an Authorization header."""
        matched = _HEADER.match(header or "")
        if not matched:
            raise AuthenticationError("No ticket")
        user, name = matched["user"], matched["name"]
        token = self._enabled(user).tokens.get(name)
        if token is None:
            raise AuthenticationError(f"no such token '{name}' for user '{user}'")
        expired = token.expire and token.expire < time.time()
        if expired or self._faults.active("token-expired", f"{user}!{name}"):
            raise AuthenticationError(f"token '{name}' access expired")
        if token.secret != matched["secret"]:
            raise AuthenticationError("invalid token value!")
        return f"{user}!{name}"

    def _enabled(self, userid: str) -> User:
        user = self.users.get(userid)
        if user is None:
            raise AuthenticationError(f"no such user ('{userid}')")
        if not user.enable:
            raise AuthenticationError(f"user '{userid}' is disabled")
        return user

    def user(self, userid: str) -> User:
        if userid not in self.users:
            raise OperationError(f"no such user ('{userid}')")
        return self.users[userid]

    def privileges(self, subject: str, path: str) -> dict[str, bool]:
        """Privilege → whether it propagates, for a user or a token on a path."""
        held = self._held(subject, path)
        return {privilege: spread for privilege, spread in held.items() if not self._taken(subject, privilege)}

    def _taken(self, subject: str, privilege: str) -> bool:
        fault = self._faults.active("missing-privilege", subject)
        return fault is not None and fault.options.get("privilege") == privilege

    def _held(self, subject: str, path: str) -> dict[str, bool]:
        if subject == ROOT:
            return dict.fromkeys(PRIVILEGES, True)
        user, _, name = subject.partition("!")
        if not name:
            return self._of_roles(self._roles(subject, path))
        token = self.users[user].tokens.get(name) if user in self.users else None
        of_user = self._held(user, path) if token else {}
        if token is None or not token.privsep:
            return of_user
        own = self._of_roles(self._roles(subject, path))
        return {privilege: own[privilege] and of_user[privilege] for privilege in own if privilege in of_user}

    def _of_roles(self, roles: Mapping[str, bool]) -> dict[str, bool]:
        held: dict[str, bool] = {}
        for role, spread in roles.items():
            for privilege in self.roles.get(role, ()):
                held[privilege] = held.get(privilege, False) or spread
        return held

    def _roles(self, subject: str, path: str) -> dict[str, bool]:
        roles = self._on_path(subject, path)
        inherited = {role for pool in self.pools_of(path) for role in self._on_path(subject, f"/pool/{pool}")}
        if "NoAccess" in roles or not inherited:
            return roles
        if "NoAccess" in inherited:
            return {"NoAccess": False}
        return {**dict.fromkeys(inherited, False), **roles}

    def _on_path(self, subject: str, path: str) -> dict[str, bool]:
        """The entries nearest to the path replace those further up."""
        roles: dict[str, bool] = {}
        for level in _levels(path):
            here = [entry for entry in self.entries if entry.path == level and entry.subject == subject]
            counting = {entry.role: entry.propagate for entry in here if entry.propagate or level == path}
            roles = counting or roles
        return {"NoAccess": roles["NoAccess"]} if "NoAccess" in roles else roles

    def allows(self, subject: str, path: str, *privileges: str, any_of: bool = False) -> bool:
        held = self.privileges(subject, path)
        return (any if any_of else all)(privilege in held for privilege in privileges)

    def check(self, subject: str, path: str, *privileges: str) -> None:
        held = self.privileges(subject, path)
        for privilege in privileges:
            if privilege not in held:
                raise PermissionDeniedError(path, [privilege])

    def check_any(self, subject: str, path: str, *privileges: str) -> None:
        if not self.allows(subject, path, *privileges, any_of=True):
            raise PermissionDeniedError(path, privileges)

    def replace_token(self, userid: str, name: str, **changes: str | int | bool) -> StoredToken:
        token = replace(self.token(userid, name), **changes)  # type: ignore[arg-type]
        self.users[userid].tokens[name] = token
        return token

    def token(self, userid: str, name: str) -> StoredToken:
        token = self.user(userid).tokens.get(name)
        if token is None:
            raise OperationError(f"no such token '{name}' for user '{userid}'")
        return token


def _levels(path: str) -> Iterator[str]:
    """/vms/100 → /, /vms, /vms/100."""
    yield "/"
    parts = [part for part in path.split("/") if part]
    for count in range(1, len(parts) + 1):
        yield "/" + "/".join(parts[:count])
