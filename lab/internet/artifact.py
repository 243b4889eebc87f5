"""An OCI artifact: one configuration, one layer, and the manifest that names both by digest."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field

from lab.internet.chart import Chart

MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"


@dataclass(frozen=True, kw_only=True)
class Blob:
    media_type: str
    content: bytes

    @property
    def digest(self) -> str:
        return sha256(self.content)

    def descriptor(self) -> dict[str, object]:
        return {"mediaType": self.media_type, "digest": self.digest, "size": len(self.content)}


@dataclass(frozen=True, kw_only=True)
class Artifact:
    config: Blob
    layer: Blob
    annotations: dict[str, str] = field(default_factory=dict)

    def manifest(self) -> bytes:
        document = {
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": self.config.descriptor(),
            "layers": [self.layer.descriptor()],
            "annotations": self.annotations,
        }
        return json.dumps(document, sort_keys=True).encode()

    def blobs(self) -> dict[str, Blob]:
        return {blob.digest: blob for blob in (self.config, self.layer)}


def chart_artifact(chart: Chart) -> Artifact:
    """As Helm pushes a chart."""
    return Artifact(
        config=Blob(media_type="application/vnd.cncf.helm.config.v1+json", content=chart.config()),
        layer=Blob(media_type="application/vnd.cncf.helm.chart.content.v1.tar+gzip", content=chart.archive),
        annotations={
            "org.opencontainers.image.title": chart.name,
            "org.opencontainers.image.version": chart.version,
        },
    )


def manifests_artifact(archive: bytes, unpacked_digest: str, source: str, revision: str) -> Artifact:
    """As Flux pushes a directory of manifests."""
    config = {"architecture": "", "os": "", "config": {}, "rootfs": {"type": "layers", "diff_ids": [unpacked_digest]}}
    return Artifact(
        config=Blob(media_type="application/vnd.cncf.flux.config.v1+json", content=json.dumps(config).encode()),
        layer=Blob(media_type="application/vnd.cncf.flux.content.v1.tar+gzip", content=archive),
        annotations={"org.opencontainers.image.source": source, "org.opencontainers.image.revision": revision},
    )


def sha256(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
