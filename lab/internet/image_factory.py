"""The Talos image factory: schematics in, image addresses out."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from lab.faults import Faults
from lab.internet.schematic import Schematic

IMAGE_SIZE = 1 << 20
QCOW2_MAGIC = b"QFI\xfb\x00\x00\x00\x03"
IMAGE_NAMES = {"nocloud-amd64.qcow2", "nocloud-amd64.raw.xz", "nocloud-amd64.raw.zst", "nocloud-amd64.iso"}
EXTENSIONS = (
    *(
        "amazon-ena",
        "amd-ucode",
        "amdgpu",
        "bnx2-bnx2x",
        "btrfs",
        "cloudflared",
        "crun",
        "drbd",
        "ecr-credential-provider",
    ),
    *(
        "fuse3",
        "gasket-driver",
        "glibc",
        "gvisor",
        "hailort",
        "i915",
        "intel-ice-firmware",
        "intel-ucode",
        "iscsi-tools",
    ),
    *("kata-containers", "lldpd", "mdadm", "mei", "metal-agent", "mergeop", "newt", "nfsrahead", "nfsd", "nut-client"),
    *(
        "qemu-guest-agent",
        "realtek-firmware",
        "spin",
        "stargz-snapshotter",
        "tailscale",
        "thunderbolt",
        "usb-modem-drivers",
    ),
    *("util-linux-tools", "vmtoolsd-guest-agent", "wasmedge", "xdma-driver", "xe", "youki", "zerotier", "zfs"),
)


class ImageFactory:
    """Schematics are kept on disk: a program that runs again posts none it already has."""

    def __init__(self, directory: Path, versions: Sequence[str], faults: Faults) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._versions = [f"v{version.removeprefix('v')}" for version in versions]
        self._faults = faults
        self.keep(Schematic())

    def keep(self, schematic: Schematic) -> str:
        (self._directory / f"{schematic.id}.yaml").write_bytes(schematic.canonical())
        return schematic.id

    def routes(self) -> list[Route]:
        return [
            Route("/schematics", self._create, methods=["POST"]),
            Route("/versions", self._list_versions),
            Route("/version/{version}/extensions/official", self._list_extensions),
            Route("/image/{schematic}/{version}/{filename}", self._image),
        ]

    def down(self) -> Response | None:
        if self._faults.active("image-factory-down"):
            return PlainTextResponse("service unavailable", status_code=503)
        return None

    async def _create(self, request: Request) -> Response:
        try:
            schematic = Schematic.parse(await request.body())
        except ValueError as error:
            return PlainTextResponse(str(error), status_code=400)
        return JSONResponse({"id": self.keep(schematic)}, status_code=201)

    async def _list_versions(self, _request: Request) -> Response:
        return JSONResponse(self._versions)

    async def _list_extensions(self, request: Request) -> Response:
        version = request.path_params["version"]
        if version not in self._versions:
            return _missing(f"Talos version {version}")
        return JSONResponse([_extension(name, version) for name in EXTENSIONS])

    async def _image(self, request: Request) -> Response:
        wanted = request.path_params
        stored = next((file for file in self._directory.iterdir() if file.stem == wanted["schematic"]), None)
        if stored is None:
            return _missing(f"schematic {wanted['schematic']}")
        if wanted["version"] not in self._versions:
            return _missing(f"Talos version {wanted['version']}")
        if wanted["filename"] not in IMAGE_NAMES:
            return _missing(f"image {wanted['filename']}")
        if unknown := _unknown_extensions(Schematic.parse(stored.read_bytes())):
            return PlainTextResponse(f"official extension {unknown[0]} is not available", status_code=400)
        content = QCOW2_MAGIC.ljust(IMAGE_SIZE, b"\0")
        return Response(content, media_type="application/octet-stream")


def _unknown_extensions(schematic: Schematic) -> list[str]:
    return [name for name in schematic.extensions if name.removeprefix("siderolabs/") not in EXTENSIONS]


def _extension(name: str, version: str) -> dict[str, str]:
    reference = f"ghcr.io/siderolabs/{name}:{version}"
    digest = hashlib.sha256(reference.encode()).hexdigest()
    return {"name": f"siderolabs/{name}", "ref": reference, "digest": f"sha256:{digest}"}


def _missing(what: str) -> Response:
    return PlainTextResponse(f"{what} not found", status_code=404)
