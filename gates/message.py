"""What an operator reads when a gate stays shut: the diagnosis and the way out."""

from __future__ import annotations

from gates.target import NodeRef
from gates.verdict import Failed, Finding, Healthy, Waiting
from gates.wait import Outcome, Progress

DETAILED = 8
"""Findings told in full; the rest are named on one line each."""


def ladder(node: NodeRef) -> tuple[str, ...]:
    """The steps that bring a stuck node back, mildest first."""
    ip, vmid = node.address, node.vmid
    return (
        f"talosctl -n {ip} -e {ip} service kubelet restart   (give it 120 s)",
        f"talosctl -n {ip} -e {ip} reboot   (give it 300 s)",
        f"talosctl -n {ip} -e {ip} reboot --mode force   (for services stuck in a graceful stop; give it 300 s)",
        f"ssh root@{node.host} qm reset {vmid}   (or POST /nodes/{node.host}/qemu/{vmid}/status/reset)",
        f"still stuck: keep the evidence (talosctl -n {ip} -e {ip} support; dmesg; events; get volumemountstatus)",
    )


def failure(*, gate: str, title: str, outcome: Outcome, bundle: str | None = None) -> str:
    """The whole message; everything above it is thrown away by the engine's display."""
    verdict = outcome.verdict
    assert not isinstance(verdict, Healthy)  # noqa: S101 - nobody asks a healthy gate for its failure
    lines = [_headline(gate, title, outcome)]
    for finding in verdict.findings[:DETAILED]:
        lines += ["", *_told(finding, outcome.ages.get(finding, 0.0))]
    rest = verdict.findings[DETAILED:]
    if rest:
        lines += ["", f"and {len(rest)} more:", *(f"  {finding.brief}" for finding in rest)]
    if bundle:
        lines += ["", f"diagnostics: {bundle}"]
    return "\n".join(lines)


def _headline(gate: str, title: str, outcome: Outcome) -> str:
    verdict = outcome.verdict
    if isinstance(verdict, Failed):
        return f"{gate} {title}: failed after {outcome.waited:.0f} s; waiting longer cannot help"
    counted = ""
    if isinstance(verdict, Waiting) and verdict.total:
        counted = f", {verdict.done} of {verdict.total} done"
    return f"{gate} {title}: not healthy within {outcome.deadline:.0f} s{counted}"


def _told(finding: Finding, age: float) -> list[str]:
    lines = [str(finding.node)] if finding.node else []
    observed = finding.observed.splitlines() or [""]
    lasting = f" (for {age:.0f} s)" if age >= 1 else ""
    lines += _labelled("observed", [*observed[:-1], observed[-1] + lasting])
    if finding.cause:
        lines += _labelled("cause", [finding.cause])
    if finding.look:
        lines += _labelled("look", list(finding.look))
    if finding.ladder and finding.node:
        lines += _labelled("recover", [f"{step}. {text}" for step, text in enumerate(ladder(finding.node), 1)])
    return lines


def _labelled(label: str, lines: list[str]) -> list[str]:
    first, *more = lines
    return [f"  {label + ':':<10}{first}", *(f"  {'':<10}{line}" for line in more)]


def progress(*, gate: str, title: str, told: Progress) -> str:
    """One line for the display of a running update."""
    counted = f" · {told.done} of {told.total}" if told.total else ""
    return (
        f"{gate} {title}: waiting for {told.waiting_for}{counted} · {told.left:.0f} s left"
        " · Ctrl-C: this gate finishes first; press again to stop now"
    )
