"""A sealed manifest in the Git tree, written when its content or the sealing key changes, never in a preview."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pulumi import Input, Output, ResourceOptions
from pulumi.dynamic import CreateResult, DiffResult, Resource, ResourceProvider, UpdateResult

from components.sealing import PlainSecret, fingerprint, sealed_manifest

TRIGGERS = ("fingerprint", "digest")


class SealedFileProvider(ResourceProvider):
    """Holds no state, so that it is stored by reference."""

    serialize_as_secret_always = False

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        return DiffResult(changes=any(_olds.get(key) != _news.get(key) for key in TRIGGERS))

    def create(self, props: dict[str, Any]) -> CreateResult:
        return CreateResult(id_=props["path"], outs=_write(props))

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> UpdateResult:
        return UpdateResult(outs=_write(_news))


def _write(props: dict[str, Any]) -> dict[str, Any]:
    secret = PlainSecret(name=props["name"], namespace=props["namespace"], data=props["data"], type=props["type"])
    path = Path(props["root"], props["path"])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(sealed_manifest(secret, props["certificate"]))
    return {"path": props["path"], **{key: props[key] for key in TRIGGERS}}


class SealedFile(Resource, module="groundwork", name="SealedFile"):
    path: Output[str]
    """Relative to the project."""
    digest: Output[str]
    """Of the plain content; secret, because a guess could be checked against it."""

    def __init__(
        self,
        name: str,
        *,
        path: str,
        secret: PlainSecret,
        data: Input[dict[str, str]],
        digest: Input[str],
        certificate: Input[str],
        opts: ResourceOptions | None = None,
    ) -> None:
        pem = Output.from_input(certificate)
        props = {
            "root": str(Path.cwd()),
            "path": path,
            "name": secret.name,
            "namespace": secret.namespace,
            "type": secret.type,
            "data": Output.secret(data),
            "digest": Output.secret(digest),
            "certificate": pem,
            "fingerprint": pem.apply(fingerprint),
        }
        super().__init__(SealedFileProvider(), name, props, opts)
