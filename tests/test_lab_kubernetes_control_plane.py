"""The control plane's certificates, files and command lines, from a machine config alone."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from lab.kubernetes import flags
from lab.kubernetes.manifests import bootstrap_objects, inline_objects
from lab.kubernetes.pki import load_key
from lab.kubernetes.secrets_directory import SecretsDirectory, admission, encryption, scheduler_configuration
from lab.kubernetes.settings import ClusterSettings, arguments, image_version
from tests.lab_kubernetes import machine_config

PORTS = flags.Ports(etcd=1, etcd_peer=2, api=3, manager=4, scheduler=5)


def settings(**cluster: Any) -> ClusterSettings:
    return ClusterSettings.parse(machine_config(**cluster))


def names(certificate: Path) -> set[str]:
    parsed = x509.load_pem_x509_certificate(certificate.read_bytes())
    value = parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    dns = value.get_values_for_type(x509.DNSName)
    return {*dns, *(str(address) for address in value.get_values_for_type(x509.IPAddress))}


def test_the_serving_certificate_names_what_talos_would_name(tmp_path: Path) -> None:
    made = settings(apiServer={"certSANs": ["api.home.arpa"]})
    secrets = SecretsDirectory(tmp_path, made, 3)
    secrets.write()
    expected = {"api.home.arpa", "10.77.0.10", "10.245.0.1", "127.0.0.1", "kubernetes.default.svc.cluster.local"}
    assert expected <= names(tmp_path / "apiserver.crt")


def test_a_renamed_certificate_keeps_its_key(tmp_path: Path) -> None:
    secrets = SecretsDirectory(tmp_path, settings(), 3)
    secrets.write()
    before = (tmp_path / "apiserver.key").read_bytes()
    secrets.name_api_server(["10.77.0.12"])
    assert (tmp_path / "apiserver.key").read_bytes() == before
    assert names(tmp_path / "apiserver.crt") == {"10.77.0.12"}
    key = load_key(before)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    certificate = x509.load_pem_x509_certificate((tmp_path / "apiserver.crt").read_bytes())
    assert certificate.public_key() == key.public_key()


def test_nobody_else_can_read_the_files(tmp_path: Path) -> None:
    directory = tmp_path / "secrets"
    SecretsDirectory(directory, settings(), 3).write()
    assert directory.stat().st_mode & 0o077 == 0
    assert [file.name for file in directory.iterdir() if file.stat().st_mode & 0o077] == []


def test_the_admin_is_a_master_of_the_cluster_named_in_the_config(tmp_path: Path) -> None:
    made = settings()
    pair = made.ca.client("admin", ["system:masters"])
    text = SecretsDirectory(tmp_path, made, 3).kubeconfig("admin@lab", pair, "https://x:6443", cluster="lab")
    document = yaml.safe_load(text)
    assert document["current-context"] == "admin@lab"
    assert document["clusters"][0]["cluster"]["server"] == "https://x:6443"
    subject = x509.load_pem_x509_certificate(pair.certificate).subject
    assert subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)[0].value == "system:masters"


def test_encryption_uses_the_secrets_of_the_config() -> None:
    made = settings(aescbcEncryptionSecret=b64encode(b"a" * 32).decode())
    providers = encryption(made)["resources"][0]["providers"]
    assert [next(iter(provider)) for provider in providers] == ["secretbox", "aescbc", "identity"]


def test_admission_and_scheduler_configuration_are_passed_on(tmp_path: Path) -> None:
    plugin = {"name": "PodSecurity", "configuration": {"kind": "PodSecurityConfiguration"}}
    assert admission([plugin])["plugins"] == [plugin]
    made = scheduler_configuration({"profiles": [{"schedulerName": "x"}]}, tmp_path)
    assert made["profiles"] == [{"schedulerName": "x"}]
    assert made["leaderElection"] == {"leaderElect": False}


def test_extra_arguments_replace_or_add_up_as_in_talos(tmp_path: Path) -> None:
    extra = {"profiling": "true", "enable-admission-plugins": "AlwaysPullImages", "oidc-issuer-url": "https://id"}
    line = flags.api_server(tmp_path, settings(apiServer={"extraArgs": extra}), PORTS, "10.77.0.11")
    assert "--profiling=true" in line
    assert "--enable-admission-plugins=NodeRestriction,AlwaysPullImages" in line
    assert "--oidc-issuer-url=https://id" in line
    assert "--service-cluster-ip-range=10.245.0.0/16" in line
    assert "--service-account-issuer=https://10.77.0.10:6443" in line


def test_an_argument_that_talos_denies_is_denied(tmp_path: Path) -> None:
    made = settings(apiServer={"extraArgs": {"client-ca-file": "/x"}})
    with pytest.raises(flags.ArgumentDeniedError, match="client-ca-file"):
        flags.api_server(tmp_path, made, PORTS, "10.77.0.11")


def test_the_labs_own_places_cannot_be_moved(tmp_path: Path) -> None:
    made = settings(controllerManager={"extraArgs": {"bind-address": "10.0.0.1", "node-cidr-mask-size": "25"}})
    line = flags.controller_manager(tmp_path, made, PORTS)
    assert "--bind-address=127.0.0.1" in line
    assert "--node-cidr-mask-size=25" in line
    assert "--cluster-cidr=10.244.0.0/16" in line


def test_no_secret_is_on_a_command_line(tmp_path: Path) -> None:
    made = settings()
    lines = flags.api_server(tmp_path, made, PORTS, "a") + flags.etcd(tmp_path, "cp-1", PORTS)
    text = " ".join(lines + flags.controller_manager(tmp_path, made, PORTS) + flags.scheduler(tmp_path, made, PORTS))
    assert made.secretbox not in text
    assert "PRIVATE KEY" not in text


def kinds(made: ClusterSettings) -> set[tuple[str, str]]:
    return {(item["kind"], item["metadata"]["name"]) for item in bootstrap_objects(made)}


def test_talos_puts_its_resolver_at_the_tenth_address() -> None:
    service = next(item for item in bootstrap_objects(settings()) if item["kind"] == "Service")
    assert service["spec"]["clusterIP"] == "10.245.0.10"


def test_what_the_config_disables_is_not_there() -> None:
    network = {"podSubnets": ["10.244.0.0/16"], "serviceSubnets": ["10.245.0.0/16"]}
    everything = kinds(settings(network=network, proxy={}))
    assert {("Deployment", "coredns"), ("DaemonSet", "kube-proxy"), ("DaemonSet", "kube-flannel")} <= everything
    nothing = kinds(settings(coreDNS={"disabled": True}))
    assert {kind for kind, _ in nothing} == {"ClusterRoleBinding"}


def test_inline_manifests_come_with_their_definitions_first() -> None:
    text = "kind: ConfigMap\nmetadata: {name: a}\n---\nkind: CustomResourceDefinition\nmetadata: {name: b}\n---\n"
    made = inline_objects(settings(inlineManifests=[{"name": "x", "contents": text}]))
    assert [item["metadata"]["name"] for item in made] == ["b", "a"]


def test_versions_and_arguments_are_read_in_every_form() -> None:
    assert image_version("registry.k8s.io/kubelet:v1.36.4@sha256:00") == "v1.36.4"
    assert image_version("registry:5000/kubelet") == image_version(None)
    assert arguments({"a": "1", "b": ["2", "3"]}) == {"a": ["1"], "b": ["2", "3"]}
