"""A Proxmox role, user and token for the storage driver, with no more privileges than it needs; opt-in.

It hangs on nothing of the cluster: the same token serves the cluster that is built after this one.
"""

from __future__ import annotations

from dataclasses import dataclass

import pulumi_proxmoxve as proxmoxve
from pulumi import ComponentResource, Output, ResourceOptions

PRIVILEGES = ["Datastore.Allocate", "Datastore.AllocateSpace", "Datastore.Audit", "VM.Audit", "VM.Config.Disk"]
TOKEN_NAME = "csi"  # noqa: S105 - a name, not a secret


@dataclass(frozen=True, kw_only=True)
class CsiCredentialsArgs:
    cluster: str


class CsiCredentials(ComponentResource):
    token: Output[str]
    """As Proxmox writes it, user@realm!id=secret; secret."""

    def __init__(self, name: str, args: CsiCredentialsArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("groundwork:index:CsiCredentials", name, {}, opts)
        durable = ResourceOptions(parent=self, protect=True)
        role = proxmoxve.RoleLegacy(
            f"{name}-csi", role_id=f"groundwork-csi-{args.cluster}", privileges=PRIVILEGES, opts=durable
        )
        user = proxmoxve.UserLegacy(
            f"{name}-csi",
            user_id=f"groundwork-csi-{args.cluster}@pve",
            comment=f"storage driver of the cluster {args.cluster}",
            opts=durable,
        )
        token = proxmoxve.user.Token(
            f"{name}-csi", user_id=user.user_id, token_name=TOKEN_NAME, privileges_separation=False, opts=durable
        )
        proxmoxve.Acl(f"{name}-csi", path="/", role_id=role.role_id, user_id=user.user_id, propagate=True, opts=durable)
        self.token = Output.secret(token.value)
        self.register_outputs({})
