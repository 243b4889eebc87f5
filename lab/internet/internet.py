"""Every site the program or the cluster talks to, behind one server."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from lab import web
from lab.authority import Authority
from lab.faults import Faults
from lab.internet.artifact import Artifact, chart_artifact
from lab.internet.chart import Chart
from lab.internet.chart_repository import ChartRepository
from lab.internet.chart_source import PROXMOX_CSI, ChartSource, chart_sources
from lab.internet.flux_distribution import REPOSITORY, distribution
from lab.internet.git_host import GitHost
from lab.internet.image_factory import ImageFactory
from lab.internet.modules import Modules, Workshop
from lab.internet.registry import Registry, Repository
from lab.internet.release_files import ReleaseFiles
from lab.internet.remote_file import RemoteFile
from lab.internet.site import Site, Sites
from lab.request_log import RequestLog


class Internet:
    """`cluster` is the stack file's cluster object: it names the Git host and the versions to serve."""

    def __init__(
        self,
        *,
        cluster: Mapping[str, Any],
        git_root: Path,
        git_token: str,
        state: Path,
        modules: Modules,
        log: RequestLog,
        authority: Authority,
        faults: Faults,
    ) -> None:
        self._authority = authority
        self._faults = faults
        self._workshop = Workshop(modules)
        self._versions = {name: str(version) for name, version in cluster["versions"].items()}
        self._charts = chart_sources(self._versions)
        self._factory = ImageFactory(state / "schematics", [self._versions["talos"]], faults)
        self.git = GitHost(git_root, git_token, faults)
        url = urlsplit(str(cluster["flux"]["url"]))
        self.git.create(url.path, str(cluster["flux"]["branch"]))
        self._sites = {**self._fixed_sites(), str(url.hostname): Site(routes=self.git.routes(), down=self.git.down)}
        self.application = Sites(self._sites, log)
        self.ready = asyncio.Event()
        self.port: int | None = None

    def names(self) -> list[str]:
        """The host names it answers for."""
        return list(self._sites)

    async def serve(self, host: str, port: int) -> None:
        """Until cancelled; `ready` is set once connections are accepted."""
        issued = self._authority.issue(self.names())
        with web.listen(host, port) as listener:
            self.port = listener.getsockname()[1]
            self.ready.set()
            try:
                await web.serve(self.application, [listener], ssl_certfile=issued.certificate, ssl_keyfile=issued.key)
            finally:
                self.ready.clear()

    async def fetch(self, url: str) -> RemoteFile:
        """What a download of this address would bring; LookupError where there is nothing to be had."""
        transport = httpx.ASGITransport(app=self.application)
        async with httpx.AsyncClient(transport=transport) as client:
            answer = await client.head(url)
        if answer.status_code != 200:
            raise LookupError(f"{url}: {answer.status_code} {answer.reason_phrase}")
        return RemoteFile(url=url, size=int(answer.headers["content-length"]), mimetype=answer.headers["content-type"])

    def skews(self) -> list[str]:
        """How the charts served so far differ from the released ones."""
        charts = (made for made in self._workshop.finished() if isinstance(made, Chart))
        return [skew for chart in charts for skew in chart.skews()]

    def _fixed_sites(self) -> dict[str, Site]:
        releases = ReleaseFiles(self._workshop)
        return {
            **self._chart_sites(),
            "ghcr.io": Site(routes=Registry(self._repositories()).routes()),
            "raw.githubusercontent.com": Site(routes=releases.raw_routes()),
            "github.com": Site(routes=releases.release_routes()),
            "factory.talos.dev": Site(routes=self._factory.routes(), down=self._factory.down),
        }

    def _chart_sites(self) -> dict[str, Site]:
        classic = [source for source in self._charts if source.home != PROXMOX_CSI]
        return {
            source.home.partition("/")[0]: Site(routes=ChartRepository([source], self._workshop, self._faults).routes())
            for source in classic
        }

    def _repositories(self) -> dict[str, Repository]:
        csi = next(source for source in self._charts if source.home == PROXMOX_CSI)
        operator = f"v{self._versions['flux_operator']}"
        return {
            PROXMOX_CSI.partition("/")[2]: Repository(
                tags={version: partial(self._chart_artifact, csi, version) for version in csi.versions},
                hidden=lambda: self._faults.active("chart-missing", csi.name) is not None,
            ),
            REPOSITORY: Repository(
                tags={operator: partial(distribution, self._workshop, operator)}, hidden=lambda: False
            ),
        }

    async def _chart_artifact(self, source: ChartSource, version: str) -> Artifact:
        return chart_artifact(await source.chart(self._workshop, version))
