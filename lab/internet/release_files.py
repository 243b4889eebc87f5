"""Files that projects publish with their releases, made from their modules the way their release jobs make them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from lab.internet.manifest import compose, read_objects, render
from lab.internet.modules import Workshop

GATEWAY_API = "sigs.k8s.io/gateway-api"
FLUX_OPERATOR = "github.com/controlplaneio-fluxcd/flux-operator"


class ReleaseFiles:
    """Any version that its module can be had in."""

    def __init__(self, workshop: Workshop) -> None:
        self._workshop = workshop

    def raw_routes(self) -> list[Route]:
        """Of raw.githubusercontent.com."""
        return [Route("/kubernetes-sigs/gateway-api/{version}/config/crd/{channel}/{filename}", self._gateway_crd)]

    def release_routes(self) -> list[Route]:
        """Of github.com."""
        download = "/releases/download/{version}/{filename}"
        return [
            Route("/kubernetes-sigs/gateway-api" + download, self._gateway_release),
            Route("/controlplaneio-fluxcd/flux-operator" + download, self._flux_operator_release),
        ]

    async def _gateway_crd(self, request: Request) -> Response:
        channel, filename = request.path_params["channel"], request.path_params["filename"]
        return await self._file(request, GATEWAY_API, lambda module: crd_file(module, channel, filename))

    async def _gateway_release(self, request: Request) -> Response:
        filename = request.path_params["filename"]
        return await self._file(request, GATEWAY_API, lambda module: gateway_install(module, filename))

    async def _flux_operator_release(self, request: Request) -> Response:
        filename = request.path_params["filename"]
        return await self._file(request, FLUX_OPERATOR, lambda module: operator_manifest(module, filename))

    async def _file(self, request: Request, module: str, recipe: Callable[[Path], bytes]) -> Response:
        try:
            content = await self._workshop.make(
                module, request.path_params["version"], recipe, key=(request.url.hostname, request.url.path)
            )
        except LookupError as error:
            return PlainTextResponse(f"404: {error}", status_code=404)
        return Response(content, media_type="text/plain; charset=utf-8")


def crd_file(module: Path, channel: str, filename: str) -> bytes:
    folder = module / "config/crd" / channel
    file = next((file for file in folder.glob("*.yaml") if file.name == filename), None)
    if file is None:
        raise LookupError(f"{channel}/{filename} is not among the CRDs of this version")
    return file.read_bytes()


def gateway_install(module: Path, filename: str) -> bytes:
    """All CRDs of a channel in one file: standard-install.yaml or experimental-install.yaml."""
    folder = module / "config/crd" / filename.removesuffix("-install.yaml")
    if not filename.endswith("-install.yaml") or not folder.is_dir():
        raise LookupError(f"{filename} is not a file of this release")
    files = (file for file in sorted(folder.glob("*.yaml")) if file.name != "kustomization.yaml")
    return render(read_objects(files))


def operator_manifest(module: Path, filename: str) -> bytes:
    folders = {"install.yaml": "config/default", "crds.yaml": "config/crd"}
    if filename not in folders:
        raise LookupError(f"{filename} is not a file of this release; there are {', '.join(folders)}")
    return render(compose(module / folders[filename]))
