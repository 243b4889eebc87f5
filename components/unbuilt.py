"""What a stack file can already say and the program cannot do yet: refused, never quietly ignored."""

from __future__ import annotations

import pulumi

from config import ClusterConfig


def refuse_unbuilt(config: ClusterConfig) -> None:
    wanted = {
        "cluster.mesh.enabled": config.mesh.enabled,
        "cluster.cilium.owner: flux": config.cilium.owner == "flux",
        "cluster.recovery.auto": config.recovery.auto,
        "cluster.storage.provider_stack": config.storage.provider_stack is not None,
    }
    refused = [f"  {path}: is not built yet\n      fix: leave it out" for path, set_ in wanted.items() if set_]
    if refused:
        raise pulumi.RunError("\n".join(["the stack file asks for what groundwork cannot do yet:", *refused]))
