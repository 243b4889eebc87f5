"""The objects of a kustomization directory, for the few features release manifests are built with."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

CLUSTER_SCOPED = {"Namespace", "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding"}
ORDER = ["Namespace", "CustomResourceDefinition", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Service"]
UNDERSTOOD = {"apiVersion", "kind", "resources", "images", "namespace"}

Object = dict[str, Any]


def compose(directory: Path) -> list[Object]:
    """Resources, image names and the namespace of a kustomization; anything else in it is refused, never ignored."""
    kustomization = yaml.safe_load((directory / "kustomization.yaml").read_text(encoding="utf-8"))
    if unknown := set(kustomization) - UNDERSTOOD:
        raise LookupError(f"{directory.name}/kustomization.yaml uses {', '.join(sorted(unknown))}")
    objects = [found for resource in kustomization["resources"] for found in _read(directory / resource)]
    for item in objects:
        _rename_images(item, kustomization.get("images", []))
        if namespace := kustomization.get("namespace"):
            _place(item, namespace)
    return sorted(objects, key=lambda item: ORDER.index(item["kind"]) if item["kind"] in ORDER else len(ORDER))


def read_objects(files: Iterable[Path]) -> list[Object]:
    return [item for file in files for item in yaml.safe_load_all(file.read_text(encoding="utf-8")) if item]


def render(objects: Iterable[Object]) -> bytes:
    return yaml.safe_dump_all(objects, sort_keys=False).encode()


def _read(path: Path) -> list[Object]:
    return compose(path) if path.is_dir() else read_objects([path])


def _rename_images(item: Object, images: list[dict[str, str]]) -> None:
    containers = item.get("spec", {}).get("template", {}).get("spec", {}).get("containers", [])
    for container in containers:
        name = container["image"].partition(":")[0]
        for image in images:
            if image["name"] == name:
                container["image"] = f"{image.get('newName', name)}:{image['newTag']}"


def _place(item: Object, namespace: str) -> None:
    if item["kind"] not in CLUSTER_SCOPED:
        item["metadata"]["namespace"] = namespace
