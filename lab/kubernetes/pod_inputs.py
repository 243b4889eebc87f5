"""What a pod's containers are given: the contents of its references, its variables, its volumes as directories."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab.kubernetes.api import Api, ApiError, Object, node_actor
from lab.kubernetes.pki import write_private
from lab.kubernetes.references import Reference, references

VARIABLE = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")


class PodInputs:
    """Read with the kubelet's own rights, anew at every start of the pod."""

    def __init__(self, api: Api, pod: Object) -> None:
        self._api = api
        self._pod = pod
        self.drivers: set[str] = set()
        """CSI drivers that have to mount something for the pod."""
        self._found: dict[tuple[str, str], Mapping[str, bytes]] = {}

    async def missing(self, *, mounted: bool) -> str | None:
        """The first needed thing that is not there, in the kubelet's words."""
        for reference in references(self._pod):
            if reference.mounted == mounted and (words := await self._lacks(reference)):
                return words
        return None

    def data(self, kind: str, name: str) -> Mapping[str, bytes]:
        return self._found.get((kind, name), {})

    async def _lacks(self, reference: Reference) -> str | None:
        namespace = self._pod["metadata"]["namespace"]
        actor = node_actor(self._pod["spec"]["nodeName"])
        try:
            found = await self._api.find(reference.path(namespace), actor=actor)
        except ApiError as error:
            # The Node authorizer learns of a new pod a moment after the kubelet does.
            if error.status == 403:
                return f"{reference.kind.lower()} {namespace}/{reference.name}: {error}"
            raise
        if found is None:
            words = f'{reference.kind.lower()} "{reference.name}" not found'
            return None if reference.optional else words
        if reference.kind == "PersistentVolumeClaim":
            return self._claim(found)
        content = contents(found)
        self._found[reference.kind, reference.name] = content
        absent = [key for key in reference.keys if key not in content]
        if absent and not reference.optional:
            return f"couldn't find key {absent[0]} in {reference.kind} {namespace}/{reference.name}"
        return None

    def _claim(self, claim: Object) -> str | None:
        if (claim.get("status") or {}).get("phase") != "Bound":
            return f'persistentvolumeclaim "{claim["metadata"]["name"]}" is not bound'
        if driver := (claim["metadata"].get("annotations") or {}).get("volume.kubernetes.io/storage-provisioner"):
            self.drivers.add(driver)
        return None

    def environment(self, container: Object) -> dict[str, str]:
        values: dict[str, str] = {}
        for group in container.get("envFrom") or []:
            values |= self._group(group)
        for variable in container.get("env") or []:
            value = variable.get("value")
            if value is None and variable.get("valueFrom"):
                value = self._value(variable["valueFrom"])
            if value is not None:
                values[variable["name"]] = expand(value, values)
        return values

    def _group(self, group: Object) -> dict[str, str]:
        for field, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
            if given := group.get(field):
                prefix = group.get("prefix") or ""
                return {f"{prefix}{key}": text.decode() for key, text in self.data(kind, given["name"]).items()}
        return {}

    def _value(self, source: Object) -> str | None:
        """Resource limits are left out: no cgroup enforces them here."""
        for field, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
            if given := source.get(field):
                content = self.data(kind, given["name"]).get(given["key"])
                return None if content is None else content.decode()
        if given := source.get("fieldRef"):
            return field_value(self._pod, given["fieldPath"])
        return None

    def write_volumes(self, directory: Path) -> dict[str, Path]:
        """A directory for each volume; host paths and tokens have none."""
        written: dict[str, Path] = {}
        for volume in self._pod["spec"].get("volumes") or []:
            place = directory / volume["name"]
            if "emptyDir" in volume:
                place.mkdir(parents=True, exist_ok=True)
                written[volume["name"]] = place
            elif files := self._files(volume):
                place.mkdir(parents=True, exist_ok=True)
                for name, content in files.items():
                    write_private(place / name.replace("/", "_"), content)
                written[volume["name"]] = place
        return written

    def _files(self, volume: Object) -> dict[str, bytes]:
        files: dict[str, bytes] = {}
        for source in [volume, *((volume.get("projected") or {}).get("sources") or [])]:
            for field, kind in (("configMap", "ConfigMap"), ("secret", "Secret")):
                if given := source.get(field):
                    content = self.data(kind, given.get("name") or given.get("secretName"))
                    files |= _selected(content, given.get("items"))
        return files


def expand(text: str, values: Mapping[str, str]) -> str:
    """`$(NAME)` as Kubernetes expands it; an unknown name stays as it is."""
    return VARIABLE.sub(lambda match: values.get(match[1], match[0]), text)


def field_value(pod: Object, path: str) -> str | None:
    """A downward API field such as metadata.labels['app']."""
    head, _, key = path.partition("['")
    value: Any = pod
    for part in head.split("."):
        value = (value or {}).get(part)
    if key:
        value = (value or {}).get(key.removesuffix("']"))
    return None if value is None else str(value)


def contents(found: Object) -> dict[str, bytes]:
    if found["kind"] == "Secret":
        return {name: b64decode(text) for name, text in (found.get("data") or {}).items()}
    plain = {name: text.encode() for name, text in (found.get("data") or {}).items()}
    return plain | {name: b64decode(text) for name, text in (found.get("binaryData") or {}).items()}


def _selected(content: Mapping[str, bytes], items: list[Object] | None) -> dict[str, bytes]:
    if not items:
        return dict(content)
    return {item["path"]: content[item["key"]] for item in items if item["key"] in content}
