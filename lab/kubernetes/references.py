"""The ConfigMaps, Secrets and claims that a pod needs before its containers can start."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lab.kubernetes.api import Object

PLURALS = {"ConfigMap": "configmaps", "Secret": "secrets", "PersistentVolumeClaim": "persistentvolumeclaims"}


@dataclass(frozen=True, kw_only=True)
class Reference:
    kind: str
    name: str
    mounted: bool
    """A volume holds up the whole pod, a variable only its container."""
    optional: bool = False
    keys: tuple[str, ...] = ()
    """Those that must exist in it."""

    def path(self, namespace: str) -> str:
        return f"/api/v1/namespaces/{namespace}/{PLURALS[self.kind]}/{self.name}"


def references(pod: Object) -> list[Reference]:
    found = [*_volumes(pod["spec"].get("volumes") or [])]
    for container in containers(pod):
        found += _variables(container)
    return list(dict.fromkeys(found))


def containers(pod: Object) -> list[Object]:
    return [*(pod["spec"].get("initContainers") or []), *pod["spec"]["containers"]]


def _volumes(volumes: list[Object]) -> Iterator[Reference]:
    for volume in volumes:
        yield from _source(volume)
        for source in (volume.get("projected") or {}).get("sources") or []:
            yield from _source(source)
        if claim := volume.get("persistentVolumeClaim"):
            yield Reference(kind="PersistentVolumeClaim", name=claim["claimName"], mounted=True)


def _source(source: Object) -> Iterator[Reference]:
    for field, kind in (("configMap", "ConfigMap"), ("secret", "Secret")):
        if given := source.get(field):
            name = given.get("name") or given.get("secretName")
            keys = tuple(item["key"] for item in given.get("items") or [])
            optional = bool(given.get("optional"))
            yield Reference(kind=kind, name=name, mounted=True, optional=optional, keys=keys)


def _variables(container: Object) -> Iterator[Reference]:
    for variable in container.get("env") or []:
        source = variable.get("valueFrom") or {}
        for field, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
            if given := source.get(field):
                keys, optional = (given["key"],), bool(given.get("optional"))
                yield Reference(kind=kind, name=given["name"], mounted=False, optional=optional, keys=keys)
    for group in container.get("envFrom") or []:
        for field, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
            if given := group.get(field):
                optional = bool(given.get("optional"))
                yield Reference(kind=kind, name=given["name"], mounted=False, optional=optional)
