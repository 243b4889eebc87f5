"""`python -m flux_analyser PATH`: what Flux will make of the tree at PATH, and whether it can."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from flux_analyser.analysis import Analysis, analyse
from flux_analyser.build import plain, with_program
from flux_analyser.chart_rules import skew_between
from flux_analyser.cluster import Cluster, Reader, find_clusters, repository_of
from flux_analyser.role import CHARTS
from flux_analyser.svg import draw
from flux_analyser.text import report


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    clusters = _clusters(options)
    if not clusters:
        sys.stderr.write(f"no Flux Kustomization below {options.path}\n")
        return 2
    provided = frozenset(options.provided)
    analyses = [analyse(replace(cluster, provided=provided), options.charts) for cluster in clusters]
    for analysis in analyses:
        sys.stdout.write(report(analysis) + "\n")
    for finding in skew_between(clusters):
        sys.stdout.write(f"{finding}\n")
    if options.svg:
        _draw(analyses, options.svg)
    return int(any(analysis.failed for analysis in analyses))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="flux_analyser", description=__doc__)
    parser.add_argument("path", type=Path, help="a repository, or a directory of one")
    parser.add_argument("--start", type=Path, action="append", help="where Flux starts, instead of looking for it")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a variable of postBuild")
    parser.add_argument("--kustomize", metavar="PROGRAM", help="build with this kubectl or kustomize")
    parser.add_argument("--charts", type=Path, help="a directory of charts by name, to compare values with")
    parser.add_argument("--provided", action="append", default=[], choices=sorted(CHARTS), help="there before Flux")
    parser.add_argument("--svg", type=Path, metavar="DIRECTORY", help="draw each cluster there")
    return parser


def _clusters(options: argparse.Namespace) -> list[Cluster]:
    path = options.path.resolve()
    build = with_program(options.kustomize) if options.kustomize else plain
    settings = dict(pair.split("=", 1) for pair in options.set)
    if options.start:
        return [Reader(repository_of(path), build, settings).read(start.resolve()) for start in options.start]
    return find_clusters(path, build, settings)


def _draw(analyses: Sequence[Analysis], directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for analysis in analyses:
        if not analysis.graph.cycle:
            name = analysis.cluster.name.replace("/", "-") + ".svg"
            (directory / name).write_text(draw(analysis.graph), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
