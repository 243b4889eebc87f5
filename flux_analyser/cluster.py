"""Everything Flux applies to one cluster, found from the directory it starts at."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from flux_analyser.build import Build, files, placed
from flux_analyser.finding import Finding
from flux_analyser.step import Document, Step, chart_of, is_step, key_of, name_of
from flux_analyser.substitution import substitute, unresolved


@dataclass(frozen=True, kw_only=True)
class Cluster:
    name: str
    steps: Mapping[str, Step]
    files: frozenset[Path]
    """The manifests it is made of."""
    findings: tuple[Finding, ...]
    """What reading it brought up."""
    settings: Mapping[str, str] = field(default_factory=dict)
    provided: frozenset[str] = frozenset()
    """Roles that are filled before Flux starts, even where the tree takes them over later."""

    def chart(self, release: Document) -> tuple[str, str | None]:
        """Name and version of a release's chart; one from a registry is named by its source."""
        reference = (release.get("spec") or {}).get("chartRef") or {}
        for _, item in self.objects():
            if item["kind"] == reference.get("kind") and name_of(item) == reference.get("name"):
                spec = item.get("spec") or {}
                version = (spec.get("ref") or {}).get("tag")
                return str(spec.get("url", "")).rpartition("/")[2], None if version is None else str(version)
        return chart_of(release)

    def objects(self) -> Iterator[tuple[Step, Document]]:
        for step in self.steps.values():
            for item in step.objects:
                yield step, item


class Reader:
    """Follows the steps from directory to directory, each once."""

    def __init__(self, root: Path, build: Build, settings: Mapping[str, str]) -> None:
        self._root = root
        self._build = build
        self._settings = settings
        self._steps: dict[str, Step] = {}
        self._files: set[Path] = set()
        self._source: str | None = None
        self._findings: set[Finding] = set()
        self._maps: dict[str, Mapping[str, str]] = {}

    def read(self, start: Path) -> Cluster:
        name = start.relative_to(self._root).as_posix()
        self._collect(self._render(start), None)
        return Cluster(
            name=name,
            steps=self._steps,
            files=frozenset(self._files),
            findings=tuple(sorted(self._findings)),
            settings={**{key: value for data in self._maps.values() for key, value in data.items()}, **self._settings},
        )

    def _collect(self, objects: Iterable[Document], parent: str | None) -> None:
        found = list(objects)
        self._maps |= {name_of(item): item.get("data") or {} for item in found if item["kind"] == "ConfigMap"}
        for item in filter(is_step, found):
            if key_of(item) in self._steps:
                self._fail("duplicate", key_of(item), "two Kustomizations have this name", "give one another name")
                continue
            below = self._apply(item)
            self._steps[key_of(item)] = Step(document=item, objects=tuple(below), parent=parent)
            self._collect(below, key_of(item))

    def _apply(self, item: Document) -> list[Document]:
        spec = item.get("spec") or {}
        path = str(spec.get("path") or ".")
        if unknown := unresolved(path):
            self._warn("variable", key_of(item), f"its path needs {', '.join(unknown)}", f"--set {unknown[0]}=…")
            return []
        if self._elsewhere(spec):
            self._warn("remote", key_of(item), f"comes from the source {spec['sourceRef']['name']} and is not read", "")
            return []
        directory = (self._root / path).resolve()
        if not directory.is_dir():
            self._warn("path", key_of(item), f"{path} does not exist", "it may be written later; check the path")
            return []
        if spec.get("patches"):
            self._warn("unread", key_of(item), "its patches are not applied here", "")
        objects = [placed(found, spec.get("targetNamespace")) for found in self._render(directory)]
        if "postBuild" not in spec:
            return objects
        return [substitute(found, self._values(spec["postBuild"])) for found in objects]

    def _elsewhere(self, spec: Document) -> bool:
        """The first step's source is taken for this repository."""
        source = spec.get("sourceRef") or {}
        self._source = self._source or source.get("name")
        return source.get("kind") in {"OCIRepository", "Bucket"} or source.get("name") != self._source

    def _values(self, post_build: Document) -> dict[str, str]:
        values: dict[str, str] = {}
        for source in post_build.get("substituteFrom") or []:
            values |= self._maps.get(source["name"], {})
        return {
            key: str(value)
            for key, value in {**values, **(post_build.get("substitute") or {}), **self._settings}.items()
        }

    def _render(self, directory: Path) -> list[Document]:
        self._files |= set(files(directory))
        return self._build(directory, self._note)

    def _note(self, finding: Finding) -> None:
        self._findings.add(replace(finding, where=finding.where.removeprefix(f"{self._root}/")))

    def _fail(self, rule: str, where: str, message: str, fix: str) -> None:
        self._findings.add(Finding(level="failure", rule=rule, where=where, message=message, fix=fix))

    def _warn(self, rule: str, where: str, message: str, fix: str) -> None:
        self._findings.add(Finding(level="warning", rule=rule, where=where, message=message, fix=fix))


def repository_of(path: Path) -> Path:
    """The root that paths in the tree are counted from: the Git repository around it, or the directory itself."""
    return next((parent for parent in (path, *path.parents) if (parent / ".git").exists()), path)


def find_clusters(path: Path, build: Build, settings: Mapping[str, str]) -> list[Cluster]:
    """From the directories that hold Kustomizations which no other such directory leads to."""
    root, holders = repository_of(path), _holders(path)
    candidates = {directory: Reader(root, build, settings).read(directory) for directory in holders}
    return [
        cluster
        for directory, cluster in candidates.items()
        if cluster.steps
        and not holders[directory]
        <= {file for other, found in candidates.items() if other != directory for file in found.files}
    ]


def _holders(top: Path) -> dict[Path, set[Path]]:
    """Files with Kustomizations by the directory they are in; hidden directories are not entered."""
    found: dict[Path, set[Path]] = {}
    for directory, below, names in os.walk(top):
        below[:] = sorted(name for name in below if not name.startswith("."))
        manifests = (Path(directory, name).resolve() for name in names if name.endswith((".yaml", ".yml")))
        if holding := {file for file in manifests if "kustomize.toolkit.fluxcd.io" in file.read_text("utf-8")}:
            found[Path(directory).resolve()] = holding
    return found
