"""An OCI registry that can be pulled from, without tokens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from lab.internet.artifact import MANIFEST_TYPE, Artifact, sha256

API_VERSION = {"Docker-Distribution-Api-Version": "registry/2.0"}


@dataclass(frozen=True, kw_only=True)
class Repository:
    """Its tags, each made when it is first asked for."""

    tags: Mapping[str, Callable[[], Awaitable[Artifact]]]
    hidden: Callable[[], bool]
    """Whether a fault takes its tags away."""

    async def artifact(self, reference: str) -> Artifact | None:
        """By tag or by the manifest's digest."""
        if self.hidden():
            return None
        for tag in self.tags if reference.startswith("sha256:") else [reference]:
            artifact = await self._make(tag)
            if artifact and (tag == reference or sha256(artifact.manifest()) == reference):
                return artifact
        return None

    async def artifacts(self) -> list[Artifact]:
        made = [await self._make(tag) for tag in self.tags]
        return [artifact for artifact in made if artifact]

    async def _make(self, tag: str) -> Artifact | None:
        try:
            return await self.tags[tag]()
        except LookupError:
            return None


class Registry:
    def __init__(self, repositories: Mapping[str, Repository]) -> None:
        self._repositories = repositories

    def routes(self) -> list[Route]:
        return [
            Route("/v2/", self._ping),
            Route("/v2/{name:path}/tags/list", self._tags),
            Route("/v2/{name:path}/manifests/{reference}", self._manifest),
            Route("/v2/{name:path}/blobs/{digest}", self._blob),
        ]

    async def _ping(self, _request: Request) -> Response:
        return JSONResponse({}, headers=API_VERSION)

    async def _tags(self, request: Request) -> Response:
        name = request.path_params["name"]
        repository = self._repositories.get(name)
        if repository is None:
            return _unknown("NAME_UNKNOWN", f"repository {name} is not in the lab's registry")
        tags = [] if repository.hidden() else list(repository.tags)
        return JSONResponse({"name": name, "tags": tags}, headers=API_VERSION)

    async def _manifest(self, request: Request) -> Response:
        name, reference = request.path_params["name"], request.path_params["reference"]
        repository = self._repositories.get(name)
        if repository is None:
            return _unknown("NAME_UNKNOWN", f"repository {name} is not in the lab's registry")
        artifact = await repository.artifact(reference)
        if artifact is None:
            return _unknown("MANIFEST_UNKNOWN", f"{name} has no {reference}, only {', '.join(repository.tags)}")
        manifest = artifact.manifest()
        headers = {**API_VERSION, "Docker-Content-Digest": sha256(manifest)}
        return Response(manifest, media_type=MANIFEST_TYPE, headers=headers)

    async def _blob(self, request: Request) -> Response:
        name, digest = request.path_params["name"], request.path_params["digest"]
        repository = self._repositories.get(name)
        for artifact in await repository.artifacts() if repository else []:
            if blob := artifact.blobs().get(digest):
                headers = {**API_VERSION, "Docker-Content-Digest": digest}
                return Response(blob.content, media_type="application/octet-stream", headers=headers)
        return _unknown("BLOB_UNKNOWN", f"{name} has no blob {digest}")


def _unknown(code: str, message: str) -> Response:
    return JSONResponse({"errors": [{"code": code, "message": message}]}, status_code=404, headers=API_VERSION)
