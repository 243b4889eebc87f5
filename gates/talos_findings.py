"""What is said about a machine whose Talos API gives no answer to build on."""

from __future__ import annotations

from gates.target import NodeRef
from gates.trouble import explain
from gates.verdict import Finding
from talos_api.connection import PORT
from talos_api.errors import Reason, TalosError


def talosctl(node: NodeRef) -> str:
    return f"talosctl -n {node.address} -e {node.address}"


def silent(node: NodeRef, error: TalosError) -> Finding:
    told = explain(error, f"Talos API {node.address}:{PORT}")
    return Finding(
        node=node,
        observed=told.observed,
        cause=_silence(error, told.cause),
        look=(
            f"ssh root@{node.host} qm status {node.vmid}",
            f"ssh root@{node.host} qm config {node.vmid}   (boot order, network, VLAN tag)",
            f"nc -vz {node.address} {PORT}",
        ),
    )


def _silence(error: TalosError, cause: str) -> str:
    if error.reason is Reason.STATUS:
        return "the machine answers, but not this question (yet)"
    if error.reason is Reason.UNREACHABLE and cause:
        return cause
    return f"not powered on, wrong VLAN, firewall on port {PORT}, or a boot order that does not reach the disk"


def unconfigured(node: NodeRef) -> Finding:
    return Finding(
        node=node,
        observed="in maintenance mode: it carries no machine configuration",
        cause="the configuration was not applied or was lost, or no disk matches its install selector",
        look=(
            f"talosctl -n {node.address} get disks --insecure",
            f"talosctl -n {node.address} dmesg --insecure | tail -50",
            f"talosctl -n {node.address} reset --insecure   (to begin this machine anew)",
        ),
    )


def foreign(node: NodeRef, error: TalosError) -> Finding:
    return Finding(
        node=node,
        observed=f"it carries another cluster's credentials ({error.message})",
        cause="this machine was installed by another cluster, or with Talos secrets this stack no longer has",
        look=(
            f"openssl s_client -connect {node.address}:{PORT} -showcerts </dev/null",
            f"ssh root@{node.host} qm config {node.vmid}",
            "restore the stack's Talos secrets, or wipe the machine's disk and begin it anew",
        ),
    )
