"""Ask every read-only gate of a living cluster, and print what each says: `make doctor STACK=infra`."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from components import questions
from components.cilium_release import expected_crds, operator_crds
from components.prerequisites import SETTINGS, namespaces
from components.questions import Access, Question
from components.sealed_secrets_key import sealed_paths
from config import ChartSpec, ClusterConfig
from gates.message import failure
from gates.redact import Redactor
from gates.registry import PROBES, run
from gates.verdict import Healthy
from gates.wait import Outcome, Progress
from operations.stack import Stack, StackError


def access_of(outputs: dict[str, Any]) -> Access:
    """The credentials a stack hands out, as the gates take them."""
    if "kubeconfig" not in outputs or "talosconfig" not in outputs:
        raise StackError("the stack has no kubeconfig yet; bring it up first: pulumi up")
    talosconfig = yaml.safe_load(outputs["talosconfig"])
    context = talosconfig["contexts"][talosconfig["context"]]
    talos = {"ca": context["ca"], "certificate": context["crt"], "key": context["key"]}
    return Access(talos=talos, kubeconfig=outputs["kubeconfig"])


@dataclass(frozen=True, kw_only=True)
class Tokens:
    proxmox: str = field(repr=False)
    git: str | None = field(repr=False, default=None)


def everything(config: ClusterConfig, access: Access, fingerprint: str, tokens: Tokens) -> list[Question]:
    """Every gate that a finished cluster can be asked, in bootstrap order."""
    talos = access.talos
    settings = [(config.flux.namespace, SETTINGS)]
    definitions = {**expected_crds(config), **operator_crds(config)}
    return [
        questions.preflight(config, tokens.proxmox),
        questions.machines_configured(config, talos),
        questions.etcd(config, talos),
        questions.kubelets(config, talos),
        questions.api(config, access),
        questions.virtual_address(config, access),
        questions.nodes_registered(config, access),
        questions.prerequisites(access, list(namespaces(config)), [], settings),
        questions.definitions(access, definitions),
        questions.cilium_workloads(config, access),
        questions.nodes_ready(config, access),
        questions.cilium_agents(config, access),
        questions.pod_network(config, access),
        questions.address_pools(config, access),
        *(chart_question(config, access, chart) for chart in config.charts if chart.gate),
        questions.sealing_key(config, access, fingerprint),
        questions.sealed_files(config, sealed_paths(config), fingerprint, tokens.git),
        questions.flux_operator(access),
        questions.flux_instance(access),
        questions.git_synced(config, access),
        questions.secrets_unsealed(access),
        *questions.storage(config, access),
        questions.helm_releases(access),
    ]


def chart_question(config: ClusterConfig, access: Access, chart: ChartSpec) -> Question:
    if chart.gate == "G11b":
        return questions.cloud_provider(config, access)
    return questions.dns(access, chart.namespace, chart.name)


def questions_of(stack: Stack) -> list[Question]:
    config, outputs = stack.cluster(), stack.outputs()
    git = stack.secret("gitToken") if config.sealing.publish == "push" else None
    tokens = Tokens(proxmox=stack.secret("proxmoxToken"), git=git)
    return everything(config, access_of(outputs), outputs["sealing_fingerprint"], tokens)


async def ask(asked: Sequence[Question], deadline: float) -> list[Outcome]:
    """Every question at once; each has `deadline` seconds to be answered."""
    return list(await asyncio.gather(*(run(each.probe, each.target, deadline, _silent) for each in asked)))


async def _silent(_progress: Progress) -> None:
    return None


def table(name: str, asked: Sequence[Question], outcomes: Sequence[Outcome]) -> Table:
    sheet = Table("gate", "asks for", "verdict", "evidence", title=f"doctor: {name}")
    for question, outcome in zip(asked, outcomes, strict=True):
        verdict = "[green]healthy[/]" if outcome.healthy else "[red]not healthy[/]"
        lines = [escape(Redactor(question.target)(line)) for line in said(outcome)]
        sheet.add_row(question.gate, PROBES[question.probe].title, verdict, "\n".join(lines))
    return sheet


def said(outcome: Outcome) -> list[str]:
    if isinstance(outcome.verdict, Healthy):
        return list(outcome.verdict.evidence)
    return [finding.brief for finding in outcome.verdict.findings]


def unwell(asked: Sequence[Question], outcomes: Sequence[Outcome]) -> list[str]:
    """The whole diagnosis of each gate that is shut, as `pulumi up` would give it."""
    return [
        Redactor(question.target)(failure(gate=question.gate, title=PROBES[question.probe].title, outcome=outcome))
        for question, outcome in zip(asked, outcomes, strict=True)
        if not outcome.healthy
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make doctor", description=__doc__)
    parser.add_argument("--stack", default="infra", help="the stack to look at")
    parser.add_argument("--deadline", type=float, default=15.0, help="seconds each gate may take (default: 15)")
    options = parser.parse_args(arguments)
    try:
        asked = questions_of(Stack(options.stack))
    except StackError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    outcomes = asyncio.run(ask(asked, options.deadline))
    console = Console()
    console.print(table(options.stack, asked, outcomes))
    for told in unwell(asked, outcomes):
        console.print(f"\n{told}", markup=False, highlight=False, soft_wrap=True)
    return 0 if all(outcome.healthy for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
