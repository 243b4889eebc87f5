"""A Flux Kustomization with what it applies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Document = Mapping[str, Any]

DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?")
DEFAULT_RELEASE_TIMEOUT = "5m"


@dataclass(frozen=True, kw_only=True)
class Step:
    document: Document
    objects: tuple[Document, ...]
    parent: str | None
    """Key of the step that applies this one; None when it stands at the start."""

    @property
    def key(self) -> str:
        return key_of(self.document)

    @property
    def spec(self) -> Document:
        spec: Document = self.document.get("spec") or {}
        return spec

    @property
    def waits(self) -> bool:
        return bool(self.spec.get("wait"))

    @property
    def needs(self) -> list[str]:
        """Keys of the steps it depends on."""
        return dependencies(self.document)

    @property
    def timeout(self) -> float:
        """Flux takes the interval where no time limit is given."""
        return seconds(str(self.spec.get("timeout") or self.spec.get("interval") or "0s"))

    @property
    def releases(self) -> list[Document]:
        return [item for item in self.objects if item["kind"] == "HelmRelease"]


def dependencies(document: Document) -> list[str]:
    own = namespace_of(document)
    listed = (document.get("spec") or {}).get("dependsOn") or []
    return [f"{dependency.get('namespace') or own}/{dependency['name']}" for dependency in listed]


def is_step(document: Document) -> bool:
    return document.get("kind") == "Kustomization" and group_of(document) == "kustomize.toolkit.fluxcd.io"


def group_of(document: Document) -> str:
    group, slash, _ = str(document.get("apiVersion", "")).partition("/")
    return group if slash else ""


def name_of(document: Document) -> str:
    return str((document.get("metadata") or {}).get("name", ""))


def namespace_of(document: Document) -> str:
    return str((document.get("metadata") or {}).get("namespace") or "flux-system")


def key_of(document: Document) -> str:
    return f"{namespace_of(document)}/{name_of(document)}"


def seconds(duration: str) -> float:
    match = DURATION.fullmatch(duration)
    hours, minutes, rest = match.groups() if match else (None, None, None)
    return int(hours or 0) * 3600 + int(minutes or 0) * 60 + float(rest or 0)


def release_timeout(release: Document) -> float:
    return seconds(str((release.get("spec") or {}).get("timeout") or DEFAULT_RELEASE_TIMEOUT))


def chart_of(release: Document) -> tuple[str, str | None]:
    """Name and version of the chart, as far as the release itself tells them."""
    spec = release.get("spec") or {}
    chart = (spec.get("chart") or {}).get("spec") or {}
    reference = spec.get("chartRef") or {}
    version = chart.get("version")
    name = chart.get("chart") or reference.get("name") or name_of(release)
    return str(name).rpartition("/")[2], None if version is None else str(version)
