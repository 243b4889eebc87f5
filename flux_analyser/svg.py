"""The order of a cluster as a picture: one column per tier, the critical path in red."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from xml.sax.saxutils import escape

from flux_analyser.graph import Graph
from flux_analyser.text import short

WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN = 180, 34, 70, 18, 20
STYLE = (
    "text{font:13px sans-serif;text-anchor:middle;dominant-baseline:central}"
    "rect{fill:#eef3fb;stroke:#4a6fa5;rx:6}path{fill:none;stroke:#9aa9bf}"
    ".critical{stroke:#c0392b;stroke-width:2}"
)

Places = dict[str, tuple[int, int]]


def draw(graph: Graph) -> str:
    places = _places(graph)
    width = len(graph.tiers) * (WIDTH + GAP_X) - GAP_X + 2 * MARGIN
    height = max(map(len, graph.tiers), default=0) * (HEIGHT + GAP_Y) - GAP_Y + 2 * MARGIN
    parts = [*_lines(graph, places), *_boxes(graph, places)]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
    return "\n".join([head, f"<style>{STYLE}</style>", *parts, "</svg>", ""])


def _places(graph: Graph) -> Places:
    return {
        key: (MARGIN + column * (WIDTH + GAP_X), MARGIN + row * (HEIGHT + GAP_Y))
        for column, tier in enumerate(graph.tiers)
        for row, key in enumerate(tier)
    }


def _lines(graph: Graph, places: Places) -> Iterator[str]:
    critical = set(pairwise(graph.critical_path))
    for later, step in graph.steps.items():
        for earlier in sorted({*step.needs} & set(places) | {pair[0] for pair in critical if pair[1] == later}):
            (x1, y1), (x2, y2) = places[earlier], places[later]
            x1, y1, y2 = x1 + WIDTH, y1 + HEIGHT // 2, y2 + HEIGHT // 2
            mark = ' class="critical"' if (earlier, later) in critical else ""
            yield f'<path{mark} d="M{x1} {y1}C{x1 + GAP_X} {y1} {x2 - GAP_X} {y2} {x2} {y2}"/>'


def _boxes(graph: Graph, places: Places) -> Iterator[str]:
    for key, (x, y) in places.items():
        mark = ' class="critical"' if key in graph.critical_path else ""
        yield f'<rect{mark} x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}"/>'
        yield f'<text x="{x + WIDTH // 2}" y="{y + HEIGHT // 2}">{escape(short(key))}</text>'
