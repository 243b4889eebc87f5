"""The real sealed-secrets controller opens what the real kubeseal has closed."""

from __future__ import annotations

import asyncio
import datetime
import json
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from lab.toolchain.programs import Programs
from tests.lab.kubernetes_world import World, admin, bring_up_network, condition, named, single_node, until, workload

pytestmark = [pytest.mark.lab, pytest.mark.asyncio(loop_scope="module")]

MODULE = ("github.com/bitnami-labs/sealed-secrets", "v0.36.6")
SECRETS = "/api/v1/namespaces/{}/secrets"
SEALED = "/apis/bitnami.com/v1alpha1/namespaces/default/sealedsecrets"


def key_pair() -> tuple[bytes, bytes]:
    key = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sealing")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=30))
        .sign(key, hashes.SHA256())
    )
    form = serialization.PrivateFormat.PKCS8
    pem = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    return certificate.public_bytes(serialization.Encoding.PEM), pem


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    programs = Programs()
    for name in ("sealed-secrets-controller", "kubeseal"):
        await programs.resolve(name)
    module = programs.module_directory(*MODULE)
    async with single_node(tmp_path_factory.mktemp("cluster"), programs) as made:
        await bring_up_network(made)
        for file in (module / "helm" / "sealed-secrets" / "crds").glob("*.yaml"):
            definition = yaml.safe_load(file.read_text())
            await made.api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
        yield made


def controller() -> dict[str, Any]:
    container = {
        "name": "controller",
        "image": "docker.io/bitnami/sealed-secrets-controller:0.36.6",
        "args": ["--update-status", "--key-renew-period", "0"],
        "ports": [{"name": "http", "containerPort": 8080}],
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": "http"}},
    }
    pod = {"serviceAccountName": "sealed-secrets", "containers": [container]}
    return workload("Deployment", "sealed-secrets-controller", {"app": "sealed-secrets"}, pod)


async def test_what_was_sealed_for_its_key_is_opened(world: World, tmp_path: Path) -> None:
    certificate, key = key_pair()
    data = {"tls.crt": b64encode(certificate).decode(), "tls.key": b64encode(key).decode()}
    secret = named("Secret", "sealing-key", type="kubernetes.io/tls", data=data)
    secret["metadata"]["labels"] = {"sealedsecrets.bitnami.com/sealed-secrets-key": "active"}
    await world.api.create(SECRETS.format("kube-system"), secret)
    account = named("ServiceAccount", "sealed-secrets")
    await world.api.create("/api/v1/namespaces/kube-system/serviceaccounts", account)
    binding = admin("sealed-secrets")
    await world.api.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
    await world.api.create("/apis/apps/v1/namespaces/kube-system/deployments", controller())

    await world.api.create(SEALED, await sealed(certificate, tmp_path))

    async def opened() -> dict[str, Any] | None:
        return await world.api.find(f"{SECRETS.format('default')}/token")

    found = await until(opened, what="the opened Secret")
    assert b64decode(found["data"]["value"]) == b"hunter2"


async def sealed(certificate: bytes, directory: Path) -> dict[str, Any]:
    file = directory / "certificate.pem"
    file.write_bytes(certificate)
    plain = named("Secret", "token", "default", data={"value": b64encode(b"hunter2").decode()})
    command = [str(Programs().path("kubeseal")), "--cert", str(file), "--format", "json"]
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    output, _ = await child.communicate(json.dumps(plain).encode())
    document: dict[str, Any] = json.loads(output)
    return document


async def test_what_was_sealed_for_another_key_is_not(world: World, tmp_path: Path) -> None:
    foreign, _ = key_pair()
    document = await sealed(foreign, tmp_path)
    document["metadata"]["name"] = document["spec"]["template"]["metadata"]["name"] = "foreign"
    await world.api.create(SEALED, document)

    async def refused() -> bool:
        return condition(await world.api.get(f"{SEALED}/foreign"), "Synced") == "False"

    await until(refused, what="the refusal")
    assert await world.api.find(f"{SECRETS.format('default')}/foreign") is None
