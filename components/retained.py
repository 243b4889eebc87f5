"""Options of everything that lives inside the cluster."""

from __future__ import annotations

from collections.abc import Sequence

from pulumi import Resource, ResourceOptions


def retained(
    parent: Resource, *, after: Sequence[Resource] = (), ignore_changes: Sequence[str] = (), protect: bool | None = None
) -> ResourceOptions:
    """Forgotten, not deleted, by destroy: the cluster goes with its machines, and may be dead already."""
    return ResourceOptions(
        parent=parent,
        depends_on=list(after),
        ignore_changes=list(ignore_changes),
        retain_on_delete=True,
        protect=protect,
    )
