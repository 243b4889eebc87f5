"""G3: etcd runs on every control plane, and all of them agree on who its members are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from gates.session import pause_for
from gates.talos import Machine, Seen, TalosSession
from gates.talos_findings import talosctl
from gates.talos_nodes import TalosTarget
from gates.target import NodeRef, parse
from gates.verdict import Finding
from talos_api import machine_pb2
from talos_api.resources import SERVICE

Member = machine_pb2.EtcdMember


class EtcdSession(TalosSession):
    """Healthy twice in a row, so that a member that flaps is not taken for one that stays."""

    passes = 2
    watched = ((SERVICE, "etcd"),)

    def __init__(self, target: Mapping[str, Any]) -> None:
        parsed = parse(TalosTarget, target)
        super().__init__(parsed.nodes, parsed.talos)
        # The watch tells of the service, not of the members: those are asked for often.
        self.longest_pause = pause_for(len(parsed.nodes))

    async def examine(self, machine: Machine) -> Seen:
        node, service = machine.node, (await machine.client.services()).get("etcd")
        if service is None or service.state != "Running" or not service.health.healthy:
            return Seen(node=node, findings=(_unhealthy(node, service),))
        members = await machine.client.etcd_members(local=True)
        findings = self._membership(node, members)
        names = ", ".join(sorted(member.hostname for member in members))
        return Seen(node=node, findings=findings, evidence=f"{node.name}: members {names}", facts=_table(members))

    def together(self, seen: list[Seen]) -> list[Finding]:
        first = seen[0]
        differing = [each for each in seen[1:] if each.facts != first.facts]
        return [
            Finding(
                node=each.node,
                observed=f"its member list {sorted(each.facts)} is not that of {first.node.name} {sorted(first.facts)}",
                cause="etcd is still changing its members, or has split in two",
                look=(f"{talosctl(each.node)} etcd members", f"{talosctl(first.node)} etcd members"),
            )
            for each in differing
        ]

    def _membership(self, node: NodeRef, members: list[Member]) -> tuple[Finding, ...]:
        """What is wrong with one machine's list, told of the machine it is about."""
        expected = {machine.node.address: machine.node for machine in self.machines}
        present = {address for member in members for address in _hosts(member)}
        findings = [_absent(each, members, expected) for address, each in expected.items() if address not in present]
        for member in members:
            known = [expected[address] for address in _hosts(member) if address in expected]
            if not known:
                findings.append(_leftover(self.machines[0].node, member))
            elif member.is_learner:
                findings.append(_learner(known[0]))
        if len(members) > len(expected) and not findings:
            findings.append(_doubled(node, members, len(expected)))
        return tuple(findings)


def _table(members: list[Member]) -> set[tuple[int, str]]:
    return {(member.id, member.hostname) for member in members}


def _hosts(member: Member) -> set[str]:
    return {urlsplit(url).hostname or "" for url in member.peer_urls}


def _unhealthy(node: NodeRef, service: machine_pb2.ServiceInfo | None) -> Finding:
    state = service.state if service else "not there"
    told = service.health.last_message if service else ""
    waits = state in ("Preparing", "Waiting", "not there")
    return Finding(
        node=node,
        observed=f"etcd is {state}" + (f": {told}" if told else "") + ("" if waits else ", not healthy"),
        cause="not bootstrapped yet, or it cannot reach the first member" if waits else "it starts, or lost its quorum",
        look=(
            f"{talosctl(node)} service etcd",
            f"{talosctl(node)} logs etcd --tail 50",
            f"{talosctl(node)} etcd status",
        ),
    )


def _absent(node: NodeRef, members: list[Member], expected: Mapping[str, NodeRef]) -> Finding:
    return Finding(
        node=node,
        observed=f"not a member of etcd, which has {len(members)} of {len(expected)}",
        cause="it has not joined yet, or cannot reach the others on port 2380",
        look=(f"{talosctl(node)} service etcd", f"{talosctl(node)} logs etcd --tail 50"),
    )


def _leftover(somewhere: NodeRef, member: Member) -> Finding:
    return Finding(
        observed=f"etcd has a member that is no control plane of this stack: {member.hostname} ({member.id:016x})",
        cause="a control plane left without leaving etcd",
        look=(
            f"{talosctl(somewhere)} etcd members",
            f"{talosctl(somewhere)} etcd remove-member {member.id:016x}   (once its machine is gone for good)",
        ),
    )


def _learner(node: NodeRef) -> Finding:
    return Finding(
        node=node,
        observed="its etcd member is still a learner",
        cause="it catches up with the leader, or cannot",
        look=(f"{talosctl(node)} etcd status", f"{talosctl(node)} etcd members"),
    )


def _doubled(node: NodeRef, members: list[Member], total: int) -> Finding:
    return Finding(
        node=node,
        observed=f"etcd has {len(members)} members instead of {total}",
        cause="a control plane is a member twice",
        look=(f"{talosctl(node)} etcd members",),
    )
