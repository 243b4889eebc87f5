"""Sealing, opened again with the private key in sealed-secrets' own byte format."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from components.publish import publish_script
from components.sealed_file import SealedFileProvider
from components.sealed_secrets_key import csi_config
from components.sealing import FINGERPRINT_ANNOTATION, PlainSecret, fingerprint, sealed_manifest
from tests.computed import key_pair
from tests.stackfiles import cluster

SECRET = PlainSecret(name="db", namespace="apps", data={"user": "amy", "password": 'a"b: !c\n'})


def unseal(sealed: str, label: str) -> str:
    private, _ = key_pair()
    key = serialization.load_pem_private_key(private.encode(), None)
    assert isinstance(key, rsa.RSAPrivateKey)
    raw = base64.b64decode(sealed)
    length = int.from_bytes(raw[:2], "big")
    oaep = padding.OAEP(mgf=padding.MGF1(hashes.SHA256()), algorithm=hashes.SHA256(), label=label.encode())
    session = key.decrypt(raw[2 : 2 + length], oaep)
    return AESGCM(session).decrypt(bytes(12), raw[2 + length :], None).decode()


def manifest() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(sealed_manifest(SECRET, key_pair()[1]))
    return document


def test_every_value_comes_back_byte_for_byte() -> None:
    sealed = manifest()["spec"]["encryptedData"]
    assert {name: unseal(value, "apps/db") for name, value in sealed.items()} == dict(SECRET.data)


def test_a_sealed_value_opens_under_its_own_name_only() -> None:
    sealed = manifest()["spec"]["encryptedData"]["user"]
    with pytest.raises((ValueError, InvalidTag)):
        unseal(sealed, "apps/other")


def test_the_manifest_says_which_key_it_was_sealed_for() -> None:
    assert manifest()["metadata"]["annotations"][FINGERPRINT_ANNOTATION] == fingerprint(key_pair()[1])
    assert manifest()["spec"]["template"] == {"metadata": {"name": "db", "namespace": "apps"}, "type": "Opaque"}


def test_no_plain_value_is_in_the_file() -> None:
    assert "amy" not in sealed_manifest(SECRET, key_pair()[1])


def test_only_rsa_keys_seal() -> None:
    with pytest.raises(TypeError, match="RSA"):
        sealed_manifest(SECRET, ed25519_certificate())


def ed25519_certificate() -> str:
    import datetime

    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    name = x509.Name([])
    begin = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, begin, begin + datetime.timedelta(days=1))
    return builder.sign(key, None).public_bytes(serialization.Encoding.PEM).decode()


def props(root: Path, digest: str = "1") -> dict[str, Any]:
    certificate = key_pair()[1]
    return {
        "root": str(root),
        "path": "sealed/db.yaml",
        "name": "db",
        "namespace": "apps",
        "type": "Opaque",
        "data": {"user": "amy"},
        "digest": digest,
        "certificate": certificate,
        "fingerprint": fingerprint(certificate),
    }


def test_a_sealed_file_is_written_and_its_state_holds_no_plain_value(tmp_path: Path) -> None:
    created = SealedFileProvider().create(props(tmp_path))
    assert json.loads((tmp_path / "sealed/db.yaml").read_text())["kind"] == "SealedSecret"
    assert "amy" not in json.dumps(created.outs)


def test_a_sealed_file_is_written_again_when_content_or_key_changes(tmp_path: Path) -> None:
    provider = SealedFileProvider()
    outs = provider.create(props(tmp_path)).outs or {}
    assert provider.diff("id", outs, props(tmp_path)).changes is False
    assert provider.diff("id", outs, props(tmp_path, digest="2")).changes is True
    before = (tmp_path / "sealed/db.yaml").read_text()
    provider.update("id", outs, props(tmp_path, digest="2"))
    assert (tmp_path / "sealed/db.yaml").read_text() != before


def test_the_storage_drivers_configuration_is_json_with_the_token_taken_apart() -> None:
    written = json.loads(csi_config(cluster("infra"), "csi@pve!driver=uuid-1")["config.yaml"])
    assert written["clusters"][0] == {
        "url": "https://proxmox.home.arpa:8006/api2/json",
        "insecure": False,
        "token_id": "csi@pve!driver",
        "token_secret": "uuid-1",
        "region": "home",
    }


def test_publishing_touches_the_sealed_files_only_and_holds_no_token() -> None:
    script = publish_script(["a/b.yaml", "it's.yaml"], "main", push=True)
    assert "git add -- a/b.yaml 'it'\"'\"'s.yaml'" in script
    assert "-A" not in script
    assert "GROUNDWORK_GIT_TOKEN" in script
    assert "push" not in publish_script(["a"], "main", push=False)
