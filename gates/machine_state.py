"""What is wrong with one machine, judged from what its Talos API says."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Interface
from typing import Any
from urllib.parse import urlsplit

from gates.talos_findings import talosctl
from gates.target import NodeRef
from gates.verdict import Finding
from talos_api import machine_pb2

NOT_A_NIC = ("lo", "cilium", "lxc", "dummy", "kubespan", "siderolink")


@dataclass(frozen=True, kw_only=True)
class MachineState:
    status: dict[str, Any]
    kubelet: machine_pb2.ServiceInfo | None
    diagnostics: list[tuple[str, dict[str, Any]]]
    time: dict[str, Any]
    addresses: list[dict[str, Any]]
    kubelet_image: str
    talos_version: str

    @property
    def kubelet_version(self) -> str:
        return self.kubelet_image.partition("@")[0].rpartition(":")[2]


def findings(node: NodeRef, state: MachineState, endpoint: str) -> list[Finding]:
    found = [_stage(node, state), _kubelet(node, state.kubelet), _time(node, state)]
    found += [_diagnostic(node, name, spec) for name, spec in state.diagnostics]
    found += _addresses(node, state, urlsplit(endpoint).hostname or endpoint)
    return [each for each in found if each]


def _stage(node: NodeRef, state: MachineState) -> Finding | None:
    stage = state.status.get("stage", "unknown")
    if stage == "running":
        return None
    unmet = (state.status.get("status") or {}).get("unmetConditions") or []
    told = "; ".join(f"{each.get('name')}: {each.get('reason')}" for each in unmet)
    return Finding(
        node=node,
        observed=f"machine stage is {stage}" + (f" ({told})" if told else ""),
        cause="it is still booting or installing, or a service of it does not come up",
        look=(f"{talosctl(node)} get machinestatus -o yaml", f"{talosctl(node)} dmesg | tail -50"),
        ladder=True,
    )


def _kubelet(node: NodeRef, service: machine_pb2.ServiceInfo | None) -> Finding | None:
    if service and service.state == "Running" and service.health.healthy:
        return None
    state = service.state if service else "not there"
    event = service.events.events[-1].msg if service and service.events.events else ""
    health = service.health.last_message if service else ""
    told = "; ".join(text for text in (event, health) if text)
    return Finding(
        node=node,
        observed=f"kubelet is {state}, not healthy" + (f": {told}" if told else ""),
        cause=_why(state, told),
        look=(
            f"{talosctl(node)} service kubelet",
            f"{talosctl(node)} logs kubelet --tail 50",
            f"{talosctl(node)} get volumemountstatus",
        ),
        ladder=True,
    )


def _why(state: str, told: str) -> str:
    if "volume" in told.lower():
        return "the volume mount race after quick restarts (fixed in Talos 1.13.8): it waits for volumes for ever"
    if state == "Failed":
        return "the kubelet died; the Node object can go on saying Ready for a while"
    return "it starts, waits for its image or its configuration, or cannot reach the API endpoint"


def _time(node: NodeRef, state: MachineState) -> Finding | None:
    if state.time.get("synced") or state.time.get("syncDisabled"):
        return None
    return Finding(
        node=node,
        observed="time is not in sync",
        cause="no NTP server answers this node; certificates and etcd need a common time",
        look=(f"{talosctl(node)} get timestatus", f"{talosctl(node)} get timeserverstatus", f"{talosctl(node)} time"),
    )


def _diagnostic(node: NodeRef, name: str, spec: dict[str, Any]) -> Finding:
    details = "; ".join(str(line) for line in spec.get("details") or [])
    return Finding(
        node=node,
        observed=f"Talos diagnostic {name}: {spec.get('message', '')}" + (f" ({details})" if details else ""),
        cause="Talos itself says that something is wrong",
        look=(f"{talosctl(node)} get diagnostics", f"https://talos.dev/diagnostic/{name}"),
    )


def _addresses(node: NodeRef, state: MachineState, shared: str) -> list[Finding]:
    """More than one IPv4 address on a NIC makes the kubelet's address flap."""
    by_link: dict[str, list[str]] = {}
    for each in state.addresses:
        address = IPv4Interface(each["address"]) if each.get("family") == "inet4" else None
        link = str(each.get("linkName", ""))
        # A shared address is announced with /32 beside the node's own.
        if address and not link.startswith(NOT_A_NIC) and address.network.prefixlen < 32 and str(address.ip) != shared:
            by_link.setdefault(link, []).append(str(address))
    return [_several(node, link, found) for link, found in by_link.items() if len(found) > 1]


def _several(node: NodeRef, link: str, addresses: list[str]) -> Finding:
    return Finding(
        node=node,
        observed=f"{len(addresses)} IPv4 addresses on {link}: {', '.join(sorted(addresses))}",
        cause="DHCP beside the static address: the kubelet restarts whenever its address seems to change",
        look=(f"{talosctl(node)} get addresses", f"{talosctl(node)} get operatorspecs"),
    )


def outdated(node: NodeRef, state: MachineState, talos: str, kubernetes: str) -> list[Finding]:
    """Versions do not mend themselves: the commands are the verdict."""
    found = []
    wanted_talos, wanted_kubelet = f"v{talos.lstrip('v')}", f"v{kubernetes.lstrip('v')}"
    if state.talos_version != wanted_talos:
        image = f"factory.talos.dev/nocloud-installer/<schematic>:{wanted_talos}"
        found.append(_version(node, "Talos", state.talos_version, wanted_talos, f"upgrade --image {image}"))
    if state.kubelet_version != wanted_kubelet:
        command = f"upgrade-k8s --to {kubernetes.lstrip('v')}"
        found.append(_version(node, "kubelet", state.kubelet_version or "unknown", wanted_kubelet, command))
    return found


def _version(node: NodeRef, what: str, running: str, wanted: str, command: str) -> Finding:
    once = "on one control plane, after every machine runs the Talos wanted" if what == "kubelet" else "one by one"
    return Finding(
        node=node,
        observed=f"runs {what} {running}, the stack wants {wanted}",
        cause=f"the stack file moved on, the machine did not; control planes first, {once}",
        look=(f"{talosctl(node)} {command}",),
    )
