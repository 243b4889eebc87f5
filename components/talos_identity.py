"""The cluster's own secrets: what makes it this cluster and no other.

It hangs on nothing of the cluster, so it outlives it: `pulumi destroy --exclude-protected` leaves it in the state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pulumiverse_talos as talos
from pulumi import ComponentResource, Output, ResourceOptions


@dataclass(frozen=True, kw_only=True)
class TalosIdentityArgs:
    contract: str
    """The Talos version the secrets are made for; frozen at birth."""


class TalosIdentity(ComponentResource):
    machine_secrets: Output[Any]
    """Everything the machine configurations of this cluster share; secret."""
    client: talos.machine.ClientConfigurationArgsDict
    """Credentials for the Talos API, as every Talos resource takes them."""
    gate_credentials: Output[dict[str, str]]
    """The same credentials as the gates take them; secret."""

    def __init__(self, name: str, args: TalosIdentityArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("groundwork:index:TalosIdentity", name, {}, opts)
        secrets = talos.machine.Secrets(
            f"{name}-secrets",
            talos_version=f"v{args.contract}",
            # A newer contract is a deliberate act: new secrets would be a new cluster.
            opts=ResourceOptions(parent=self, protect=True, ignore_changes=["talosVersion"]),
        )
        issued = secrets.client_configuration
        self.machine_secrets = Output.secret(secrets.machine_secrets)
        self.client = {
            "ca_certificate": issued.ca_certificate,
            "client_certificate": issued.client_certificate,
            "client_key": Output.secret(issued.client_key),
        }
        self.gate_credentials = Output.secret(
            Output.all(ca=issued.ca_certificate, certificate=issued.client_certificate, key=issued.client_key)
        )
        self.register_outputs({"machine_secrets": self.machine_secrets})
