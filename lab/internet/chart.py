"""A Helm chart, packed from the directory in which its authors keep it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from lab.internet.archive import pack, read_tree

FIELDS = (
    *("apiVersion", "name", "version", "appVersion", "kubeVersion", "type", "description", "home", "icon", "sources"),
    *("keywords", "maintainers", "annotations", "dependencies", "condition", "tags", "deprecated"),
)
"""What Helm knows of Chart.yaml; it drops other fields when it packs, and refuses an index that has them."""


@dataclass(frozen=True, kw_only=True)
class Chart:
    metadata: dict[str, Any]
    """Its Chart.yaml, with the version it is served under."""
    archive: bytes
    found_version: str
    """The version the directory itself names."""
    remark: str | None = None
    """What else its authors' release job would have changed."""

    @property
    def name(self) -> str:
        return str(self.metadata["name"])

    @property
    def version(self) -> str:
        return str(self.metadata["version"])

    @property
    def filename(self) -> str:
        return f"{self.name}-{self.version}.tgz"

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.archive).hexdigest()

    def skews(self) -> list[str]:
        """How it differs from what its authors released, for the report."""
        found = []
        if self.found_version != self.version:
            found.append(f"chart {self.name} {self.version} was packed from sources of {self.found_version}")
        if self.remark:
            found.append(f"chart {self.name} {self.version}: {self.remark}")
        return found

    def config(self) -> bytes:
        """Its metadata as JSON, which is what an OCI artifact carries beside the archive."""
        return json.dumps(self.metadata, sort_keys=True).encode()


def pack_chart(directory: Path, version: str, remark: str | None = None) -> Chart:
    """The chart of this directory under this version."""
    written = yaml.safe_load((directory / "Chart.yaml").read_text(encoding="utf-8"))
    metadata = {field: written[field] for field in FIELDS if written.get(field)} | {"version": version}
    files = read_tree(directory, str(metadata["name"]))
    files[f"{metadata['name']}/Chart.yaml"] = yaml.safe_dump(metadata, sort_keys=False).encode()
    return Chart(metadata=metadata, archive=pack(files), found_version=str(written["version"]), remark=remark)
