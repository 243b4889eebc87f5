"""A classic chart repository: an index and the archives it names."""

from __future__ import annotations

from collections.abc import Sequence

import yaml
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from lab.faults import Faults
from lab.internet.chart import Chart
from lab.internet.chart_source import ChartSource
from lab.internet.modules import Workshop

CREATED = "2026-01-01T00:00:00Z"


class ChartRepository:
    """Serves every chart of one home; a chart that cannot be had is missing from the index, as it would be upstream."""

    def __init__(self, sources: Sequence[ChartSource], workshop: Workshop, faults: Faults) -> None:
        self._sources = sources
        self._workshop = workshop
        self._faults = faults
        self.path = sources[0].home.partition("/")[2]

    def routes(self) -> list[Route]:
        prefix = f"/{self.path}" if self.path else ""
        return [Route(f"{prefix}/index.yaml", self._index), Route(f"{prefix}/{{filename}}", self._archive)]

    async def _index(self, request: Request) -> Response:
        base = f"https://{request.url.netloc}/{self.path}".rstrip("/")
        entries: dict[str, list[dict[str, object]]] = {}
        for chart in await self._charts():
            entry = {**chart.metadata, "created": CREATED, "digest": chart.digest, "urls": [f"{base}/{chart.filename}"]}
            entries.setdefault(chart.name, []).append(entry)
        index = {"apiVersion": "v1", "entries": entries, "generated": CREATED}
        return Response(yaml.safe_dump(index, sort_keys=False), media_type="application/yaml")

    async def _archive(self, request: Request) -> Response:
        filename = request.path_params["filename"]
        for chart in await self._charts():
            if chart.filename == filename:
                return Response(chart.archive, media_type="application/gzip")
        return PlainTextResponse(f"no chart {filename} in this repository", status_code=404)

    async def _charts(self) -> list[Chart]:
        charts = []
        for source in self._sources:
            if self._faults.active("chart-missing", source.name):
                continue
            for version in source.versions:
                try:
                    charts.append(await source.chart(self._workshop, version))
                except LookupError:
                    continue
        return charts
