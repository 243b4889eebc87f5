"""What a probe says after one look."""

from __future__ import annotations

from dataclasses import dataclass

from gates.target import NodeRef


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that is not as it should be."""

    observed: str
    node: NodeRef | None = None
    cause: str = ""
    """The likely cause, in one line."""
    look: tuple[str, ...] = ()
    """Commands that look closer."""
    ladder: bool = False
    """Whether the recovery ladder of a stuck node applies."""

    @property
    def subject(self) -> str:
        return self.node.name if self.node else ""

    @property
    def brief(self) -> str:
        """One line for a progress display."""
        first = self.observed.splitlines()[0] if self.observed else ""
        return f"{self.subject}: {first}" if self.node else first


@dataclass(frozen=True, kw_only=True)
class Healthy:
    evidence: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Waiting:
    findings: tuple[Finding, ...]
    done: int = 0
    total: int = 0
    """Nodes or objects; 0 where counting says nothing."""


@dataclass(frozen=True, kw_only=True)
class Failed:
    """Waiting cannot help."""

    findings: tuple[Finding, ...]


Verdict = Healthy | Waiting | Failed


def unique(findings: list[Finding]) -> list[Finding]:
    return list(dict.fromkeys(findings))


def conclude(
    findings: list[Finding], evidence: list[str], *, done: int = 0, total: int = 0, fatal: list[Finding] | None = None
) -> Verdict:
    """Healthy when nothing was found; failed when one of the findings is fatal."""
    if fatal:
        return Failed(findings=(*fatal, *findings))
    if findings:
        return Waiting(findings=tuple(findings), done=done, total=total)
    return Healthy(evidence=tuple(evidence))
