"""The artifact that flux-operator installs Flux from: component manifests and image digests by Flux version."""

from __future__ import annotations

import gzip
from pathlib import Path

from lab.internet.archive import pack, read_tree
from lab.internet.artifact import Artifact, manifests_artifact, sha256
from lab.internet.modules import Workshop
from lab.internet.release_files import FLUX_OPERATOR, operator_manifest

REPOSITORY = "controlplaneio-fluxcd/flux-operator-manifests"
FOLDERS = ("flux", "flux-images", "flux-vex")


async def distribution(workshop: Workshop, version: str) -> Artifact:
    """Of one flux-operator release."""

    def recipe(module: Path) -> Artifact:
        return pack_distribution(module, version)

    return await workshop.make(FLUX_OPERATOR, version, recipe, key=(REPOSITORY, version))


def pack_distribution(module: Path, version: str) -> Artifact:
    files = {"flux-operator/install.yaml": operator_manifest(module, "install.yaml")}
    for folder in FOLDERS:
        files.update(read_tree(module / "config/data" / folder, folder))
    archive = pack(files)
    return manifests_artifact(archive, sha256(gzip.decompress(archive)), f"https://{FLUX_OPERATOR}", version)
