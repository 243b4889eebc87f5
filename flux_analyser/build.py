"""From a directory to its objects: plain reading of the YAML, or kustomize itself where a program for it is given."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from flux_analyser.finding import Finding
from flux_analyser.step import Document

FILES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
READ = {"apiVersion", "kind", "metadata", "resources", "components", "namespace", "labels", "generatorOptions"}
GENERATORS = {"configMapGenerator": "ConfigMap", "secretGenerator": "Secret"}
CLUSTER_WIDE = {
    *("Namespace", "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", "StorageClass", "PriorityClass"),
    *("PersistentVolume", "ClusterIssuer", "GatewayClass", "ClusterSecretStore", "IngressClass"),
}

Report = Callable[[Finding], None]
Build = Callable[[Path, Report], list[Document]]


class Loader(yaml.SafeLoader):
    """As lenient as Kubernetes' own reader: `=` is text, and an anchor may be set again."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if not self.check_event(yaml.AliasEvent):
            event: yaml.Event = self.peek_event()  # type: ignore[no-untyped-call]
            self.anchors.pop(getattr(event, "anchor", None), None)
        return super().compose_node(parent, index)

    def construct_text(self, node: yaml.ScalarNode) -> str:
        return str(self.construct_scalar(node))


Loader.add_constructor("tag:yaml.org,2002:value", Loader.construct_text)


def plain(directory: Path, report: Report) -> list[Document]:
    """Resources, components and the namespace; what else a kustomization does is reported as unread."""
    file = next((directory / name for name in FILES if (directory / name).is_file()), None)
    if file is None:
        return list(_generated(directory, report))
    return list(_kustomization(file, report))


def with_program(program: str) -> Build:
    """`kubectl` or `kustomize`."""
    verb = "kustomize" if Path(program).name.startswith("kubectl") else "build"

    def build(directory: Path, report: Report) -> list[Document]:
        if not any((directory / name).is_file() for name in FILES):
            return list(_generated(directory, report))
        command = [program, verb, "--load-restrictor", "LoadRestrictionsNone", str(directory)]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
        if answer.returncode and "kustomization.yaml is empty" not in answer.stderr:
            report(_failure(directory, answer.stderr.strip().splitlines()[-1]))
        return list(_objects(answer.stdout, directory, report))

    return build


def files(directory: Path) -> Iterator[Path]:
    """The manifests that building the directory reads."""
    file = next((directory / name for name in FILES if (directory / name).is_file()), None)
    if file is None:
        listed = sorted(path for path in directory.iterdir() if not path.name.startswith("."))
    else:
        document = _head(file, lambda _finding: None)
        names = [*(document.get("resources") or []), *(document.get("components") or [])]
        listed = [directory / str(name) for name in names]
    for path in listed:
        if path.is_dir():
            yield from files(path)
        elif path.suffix in {".yaml", ".yml"} and path.is_file():
            yield path.resolve()


def _generated(directory: Path, report: Report) -> Iterator[Document]:
    """What Flux makes of a directory without a kustomization: every manifest below it."""
    for path in sorted(path for path in directory.iterdir() if not path.name.startswith(".")):
        if path.is_dir():
            yield from plain(path, report)
        elif path.suffix in {".yaml", ".yml"}:
            yield from _read(path, report)


def _kustomization(file: Path, report: Report) -> Iterator[Document]:
    document = _head(file, report)
    for key in sorted(set(document) - READ - set(GENERATORS)):
        report(
            Finding(level="warning", rule="unread", where=str(file), message=f"`{key}` is not read without kustomize")
        )
    namespace = document.get("namespace")
    for resource in [*(document.get("resources") or []), *(document.get("components") or [])]:
        for item in _resource(file, str(resource), report):
            yield placed(item, namespace)
    for key, kind in GENERATORS.items():
        for generator in document.get(key) or []:
            yield placed({"apiVersion": "v1", "kind": kind, "metadata": {"name": generator["name"]}}, namespace)


def _resource(file: Path, resource: str, report: Report) -> list[Document]:
    path = file.parent / resource
    if path.is_dir():
        return plain(path, report)
    if path.is_file():
        return _read(path, report)
    if "://" in resource or resource.startswith("github.com/"):
        report(
            Finding(level="warning", rule="remote", where=str(file), message=f"{resource} is elsewhere and not read")
        )
    else:
        report(_failure(file, f"{resource} does not exist"))
    return []


def _head(file: Path, report: Report) -> Document:
    """A kustomization, which need not name its kind."""
    try:
        document: Any = next(iter(yaml.load_all(file.read_text(encoding="utf-8"), Loader=Loader)), {})
    except yaml.YAMLError as error:
        report(_not_yaml(file, error))
        return {}
    return document if isinstance(document, dict) else {}


def _read(file: Path, report: Report) -> list[Document]:
    return list(_objects(file.read_text(encoding="utf-8"), file, report))


def _objects(text: str, source: Path, report: Report) -> Iterator[Document]:
    try:
        for document in yaml.load_all(text, Loader=Loader):
            if isinstance(document, dict) and "kind" in document:
                yield from document["items"] if document["kind"] == "List" else [document]
    except yaml.YAMLError as error:
        report(_not_yaml(source, error))


def placed(item: Document, namespace: Any) -> Document:
    """In this namespace, unless its kind has none."""
    if not namespace or item["kind"] in CLUSTER_WIDE:
        return item
    return {**item, "metadata": {**(item.get("metadata") or {}), "namespace": namespace}}


def _not_yaml(source: Path, error: yaml.YAMLError) -> Finding:
    return _failure(source, f"is no YAML: {' '.join(str(error).split())}")


def _failure(where: Path, message: str) -> Finding:
    return Finding(level="failure", rule="build", where=str(where), message=message)
