"""The sealing key: made once, in place before any controller, and everything that is sealed with it.

Key and certificate hang on nothing of the cluster, so they outlive it and old sealed files still open.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

import pulumi_command as command
import pulumi_kubernetes as kubernetes
import pulumi_tls as tls
from pulumi import ComponentResource, Output, Resource, ResourceOptions

from components import questions
from components.publish import publish_script
from components.questions import CSI_RELEASE, Access
from components.retained import retained
from components.sealed_file import SealedFile
from components.sealing import PlainSecret, fingerprint
from components.stage import Stage
from config import ClusterConfig

TEN_YEARS = 10 * 365 * 24
ACTIVE = {"sealedsecrets.bitnami.com/sealed-secrets-key": "active"}
CANARY = "groundwork-canary"


def csi_config(config: ClusterConfig, token: str) -> dict[str, str]:
    """The storage driver's configuration; JSON, so that no token is ever quoted wrongly."""
    token_id, _, token_secret = token.partition("=")
    cluster = {
        "url": f"{str(config.proxmox.endpoint).rstrip('/')}/api2/json",
        "insecure": config.proxmox.insecure,
        "token_id": token_id,
        "token_secret": token_secret,
        "region": config.proxmox.region,
    }
    return {"config.yaml": json.dumps({"clusters": [cluster]})}


def sealed_path(config: ClusterConfig, secret: str) -> str:
    return f"{config.sealing.directory}/{secret}.yaml"


def sealed_paths(config: ClusterConfig) -> list[str]:
    """Every file that is sealed, the storage driver's credentials first."""
    names = [CSI_RELEASE, CANARY] if config.storage.csi else [CANARY]
    return [sealed_path(config, name) for name in names]


def digest(data: dict[str, str]) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class SealedSecretsKeyArgs:
    stage: Stage
    access: Access
    csi_token: Output[str] | None
    git_token: Output[str] | None
    certificate: Output[str] | None = None
    """An existing certificate and its key, in place of new ones."""
    key: Output[str] | None = None
    after: Sequence[Resource] = ()
    """What the cluster-side part waits for; the key itself waits for nothing."""


class SealedSecretsKey(ComponentResource):
    certificate: Output[str]
    """Public: anyone may seal with it."""
    private_key: Output[str]
    """Secret; the backup without which no sealed file opens again."""
    fingerprint: Output[str]
    """SHA-256 of the certificate."""

    def __init__(self, name: str, args: SealedSecretsKeyArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("groundwork:index:SealedSecretsKey", name, {}, opts)
        config = args.stage.config
        self._identity(name, args)
        key = self._key_secret(name, config, args.after)
        present = questions.sealing_key(config, args.access, self.fingerprint)
        in_place = args.stage.gate(present, parent=self, after=[key])
        files = self._sealed_files(config, args, in_place)
        published = self._publish(name, config, args, files)
        current = questions.sealed_files(config, sealed_paths(config), self.fingerprint, args.git_token)
        args.stage.gate(current, parent=self, after=[*files, *published])
        self.register_outputs({"certificate": self.certificate, "fingerprint": self.fingerprint})

    def _identity(self, name: str, args: SealedSecretsKeyArgs) -> None:
        if args.certificate is not None and args.key is not None:
            self.private_key, self.certificate = Output.secret(args.key), Output.unsecret(args.certificate)
        else:
            durable = ResourceOptions(parent=self, protect=True)
            key = tls.PrivateKey(f"{name}-sealing-key", algorithm="RSA", rsa_bits=4096, opts=durable)
            certificate = tls.SelfSignedCert(
                f"{name}-sealing-certificate",
                private_key_pem=key.private_key_pem,
                allowed_uses=["encipher_only"],
                validity_period_hours=TEN_YEARS,
                subject={"common_name": f"{name} sealed secrets"},
                opts=durable,
            )
            self.private_key, self.certificate = Output.secret(key.private_key_pem), certificate.cert_pem
        self.fingerprint = self.certificate.apply(fingerprint)

    def _key_secret(self, name: str, config: ClusterConfig, after: Sequence[Resource]) -> Resource:
        return kubernetes.core.v1.Secret(
            f"{name}-sealing-key",
            metadata={"name": config.sealing.key_name, "namespace": config.sealing.namespace, "labels": ACTIVE},
            type="kubernetes.io/tls",
            string_data={"tls.crt": self.certificate, "tls.key": self.private_key},
            opts=retained(self, after=after),
        )

    def _sealed_files(self, config: ClusterConfig, args: SealedSecretsKeyArgs, in_place: Resource) -> list[SealedFile]:
        """The storage driver's credentials first; the canary last."""
        files = []
        if config.storage.csi and args.csi_token is not None:
            secret = PlainSecret(name=CSI_RELEASE, namespace=config.storage.csi.namespace, data={})
            data = args.csi_token.apply(lambda token: csi_config(config, token))
            files.append(self._seal(config, secret, data, in_place))
        canary = PlainSecret(name=CANARY, namespace=config.flux.namespace, data={})
        files.append(self._seal(config, canary, Output.from_input({"cluster": config.name}), in_place))
        return files

    def _seal(
        self, config: ClusterConfig, secret: PlainSecret, data: Output[dict[str, str]], in_place: Resource
    ) -> SealedFile:
        return SealedFile(
            f"{config.name}-{secret.name}-sealed",
            path=sealed_path(config, secret.name),
            secret=secret,
            data=data,
            digest=data.apply(digest),
            certificate=self.certificate,
            opts=ResourceOptions(parent=self, depends_on=[in_place], retain_on_delete=True),
        )

    def _publish(
        self, name: str, config: ClusterConfig, args: SealedSecretsKeyArgs, files: list[SealedFile]
    ) -> list[Resource]:
        if config.sealing.publish == "none":
            return []
        push = config.sealing.publish == "push"
        return [
            command.local.Command(
                f"{name}-publish",
                create=publish_script(sealed_paths(config), config.flux.branch, push=push),
                environment={"GROUNDWORK_GIT_TOKEN": args.git_token} if push and args.git_token is not None else None,
                triggers=[self.fingerprint, *(file.digest for file in files)],
                opts=ResourceOptions(parent=self),
            )
        ]
