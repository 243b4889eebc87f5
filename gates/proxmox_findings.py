"""What the preflight says about each thing that is missing, with the command that provides it."""

from __future__ import annotations

from typing import Any

from gates.trouble import TroubleError
from gates.verdict import Finding


def silent(endpoint: str, identity: str, trouble: TroubleError) -> Finding:
    """The API did not even tell its version."""
    user = identity.partition("!")[0]
    look = (f"curl -sS {endpoint}/api2/json/version", f"pveum user token list {user}   (on a Proxmox host)")
    return Finding(observed=trouble.observed, cause=trouble.cause, look=look)


def too_old(version: str, minimum: str) -> list[Finding]:
    if _numbers(version) >= _numbers(minimum):
        return []
    cause = "older releases cannot import disk images through the API"
    return [Finding(observed=f"Proxmox VE {version}, at least {minimum} is needed", cause=cause, look=("pveversion",))]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.partition("-")[0].split(".") if part.isdigit())


def lacking(token: str, path: str, privileges: list[str]) -> Finding:
    user = token.partition("!")[0]
    words = [word.capitalize() for word in path.replace("-", "/").split("/") if word] or ["Root"]
    role = "".join(["Groundwork", *words])
    return Finding(
        observed=f"{token} lacks {', '.join(privileges)} on {path}",
        cause="a token with privilege separation needs the role itself, and so does its user",
        look=(
            f"pveum role add {role} --privs '{','.join(privileges)}'",
            f"pveum acl modify {path} --users '{user}' --tokens '{token}' --roles {role}",
        ),
    )


def no_host(host: str, known: list[str]) -> Finding:
    return Finding(
        observed=f"no host {host}; there are {', '.join(known)}", cause="a misspelt name", look=("pvecm nodes",)
    )


def offline(host: str, status: str) -> Finding:
    look = ("pvecm status", f"ssh root@{host} uptime")
    return Finding(observed=f"host {host} is {status}", cause="powered off, or out of the cluster's quorum", look=look)


def taken(vmid: int, name: str, host: str, other: dict[str, Any]) -> Finding:
    return Finding(
        observed=f"VM id {vmid} ({name} on {host}) is taken by {other.get('name')} on {other.get('node')}",
        cause="another machine's id, or this machine was renamed or moved by hand",
        look=(f"ssh root@{other.get('node')} qm config {vmid}", "give the node another vmid in the stack file"),
    )


def no_storage(host: str, storage: str) -> Finding:
    look = (f"ssh root@{host} pvesm status",)
    return Finding(observed=f"no storage {storage} on {host}", cause="misspelt, or limited to other hosts", look=look)


def wrong_content(host: str, storage: str, wanted: str, content: str) -> Finding:
    return Finding(
        observed=f"storage {storage} on {host} takes {content or 'nothing'}, not {wanted}",
        cause="its content types do not include what is put there",
        look=(f"pvesm set {storage} --content {','.join(filter(None, [content, wanted]))}",),
    )


def inactive(host: str, storage: str) -> Finding:
    look = (f"ssh root@{host} pvesm status --storage {storage}",)
    return Finding(observed=f"storage {storage} on {host} is not active", cause="not mounted, or disabled", look=look)


def no_bridge(host: str, bridge: str, known: list[str]) -> Finding:
    observed = f"no bridge {bridge} on {host}; there are {', '.join(known) or 'none'}"
    return Finding(
        observed=observed, cause="misspelt, or not set up on this host", look=(f"ssh root@{host} ip -br link",)
    )


def no_image(host: str, url: str, told: str) -> Finding:
    return Finding(
        observed=f"{host} cannot reach {url}: {told}",
        cause="no route, no DNS or no proxy on the host, or the image factory is down",
        look=(f"ssh root@{host} curl -sSI {url}",),
    )
