"""An analysis as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from flux_analyser.analysis import Analysis
from flux_analyser.role import CHARTS, roles_of


def report(analysis: Analysis) -> str:
    return "\n".join(_lines(analysis)) + "\n"


def _lines(analysis: Analysis) -> Iterator[str]:
    yield f"── {analysis.cluster.name} " + "─" * max(0, 60 - len(analysis.cluster.name))
    yield from _counts(analysis)
    if analysis.graph.cycle:
        yield "no order: the steps wait for each other in a circle"
    else:
        yield from _order(analysis)
    yield ""
    yield from map(str, analysis.findings)
    failures = sum(finding.level == "failure" for finding in analysis.findings)
    yield f"{failures} failures, {len(analysis.findings) - failures} warnings"


def _counts(analysis: Analysis) -> Iterator[str]:
    steps = analysis.cluster.steps.values()
    edges = sum(len(step.needs) for step in steps)
    waiting = sum(step.waits for step in steps)
    checked = sum(bool(step.spec.get("healthChecks")) for step in steps)
    yield f"{len(steps)} Kustomizations, {edges} dependencies, {waiting} wait, {checked} have health checks"
    kinds = Counter(str(item["kind"]) for _, item in analysis.cluster.objects())
    yield ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    present = {role for step in steps for role in roles_of(step)}
    absent = [role for role in CHARTS if role not in present and role != "storage operator"]
    if absent:
        yield f"not in the tree, taken as provided or not wanted: {', '.join(absent)}"


def _order(analysis: Analysis) -> Iterator[str]:
    graph = analysis.graph
    for number, tier in enumerate(graph.tiers):
        yield f"tier {number}"
        for key in tier:
            yield f"  {short(key)}{_after(analysis, key)}"
    limit = sum(graph.steps[key].timeout for key in graph.critical_path)
    chain = " → ".join(map(short, graph.critical_path))
    yield f"critical path, {len(graph.critical_path)} steps, at most {limit / 60:.0f} min: {chain}"


def _after(analysis: Analysis, key: str) -> str:
    step = analysis.cluster.steps[key]
    parts = []
    if step.parent:
        parts.append(f"in {short(step.parent)}")
    if step.needs:
        parts.append(f"after {', '.join(map(short, step.needs))}")
    return f"  ({'; '.join(parts)})" if parts else ""


def short(key: str) -> str:
    """Without the namespace that nearly all of them share."""
    return key.removeprefix("flux-system/")
