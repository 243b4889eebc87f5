"""Gates on sealing, Flux, storage, and everything once more."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes

from gates import git
from gates.registry import run
from tests.gates_kubernetes import FakeKubernetes, Object, condition, serving
from tests.gates_objects import NODES, all_nodes, custom, daemon_set, deployment, node_object, ready
from tests.gates_runs import evidence, fatal, findings, noticed, observed, untold
from tests.talos_pki import TestAuthority

DEPLOYMENTS, DAEMON_SETS = "/apis/apps/v1/deployments", "/apis/apps/v1/daemonsets"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
REPOSITORIES = "/apis/source.toolkit.fluxcd.io/v1/gitrepositories"
KUSTOMIZATIONS = "/apis/kustomize.toolkit.fluxcd.io/v1/kustomizations"
SEALED, SECRETS = "/apis/bitnami.com/v1alpha1/sealedsecrets", "/api/v1/secrets"
URL = "https://git.home.arpa/platform/groundwork.git"
REVISION = "refs/heads/main@sha1:abc"


@pytest.fixture
async def api() -> AsyncIterator[FakeKubernetes]:
    async with serving() as server:
        yield server


def target(api: FakeKubernetes, **more: Any) -> dict[str, Any]:
    return {"kubeconfig": api.kubeconfig(), **more}


# G12

PEM = TestAuthority().certificate
FINGERPRINT = x509.load_pem_x509_certificate(PEM.encode()).fingerprint(hashes.SHA256()).hex()


def key(*, label: str = "active", pem: str | None = PEM) -> Object:
    data = {"tls.crt": base64.b64encode(pem.encode()).decode()} if pem else {}
    item = custom("key", "sealed", data={**data, "tls.key": "c2VjcmV0"})
    item["metadata"]["labels"] = {"sealedsecrets.bitnami.com/sealed-secrets-key": label}
    return item


def sealing(api: FakeKubernetes) -> dict[str, Any]:
    return target(api, namespace="sealed", name="key", fingerprint=FINGERPRINT)


async def test_sealing_key_in_place(api: FakeKubernetes) -> None:
    api.put(SECRETS, key())
    assert await evidence("sealing-key", sealing(api)) == (f"sealed/key: active, SHA-256 {FINGERPRINT}",)


@pytest.mark.parametrize(
    ("items", "told"),
    [
        ([], "no Secret sealed/key"),
        ([key(label="compromised")], "not labelled active"),
        ([key(pem=TestAuthority("other").certificate)], f"this stack seals for {FINGERPRINT}"),
        ([key(pem="rubbish")], "holds the certificate (none)"),
        ([key(pem=None)], "holds the certificate (none)"),
    ],
    ids=["missing", "unlabelled", "another", "unreadable", "empty"],
)
async def test_sealing_keys_that_would_not_open_anything(api: FakeKubernetes, items: list[Object], told: str) -> None:
    api.put(SECRETS, *items)
    assert told in observed(await findings("sealing-key", sealing(api)))


# G12b


def sealed_file(fingerprint: str = "f1") -> str:
    return json.dumps({"kind": "SealedSecret", "metadata": {"annotations": {"groundwork.dev/sealed-for": fingerprint}}})


class Work:
    """A working tree and the origin it pushes to."""

    def __init__(self, directory: Path) -> None:
        self.tree, self.origin = directory / "tree", directory / "origin.git"
        self.git("init", "--quiet", "--bare", "--initial-branch=main", str(self.origin), cwd=directory)
        self.git("clone", "--quiet", str(self.origin), str(self.tree), cwd=directory)
        self.write("README", "hello")

    def git(self, *arguments: str, cwd: Path | None = None) -> None:
        identity = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a"}
        environment = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", **identity, "GIT_COMMITTER_EMAIL": "a@b"}
        subprocess.run(["git", *arguments], cwd=cwd or self.tree, env=environment, check=True, capture_output=True)

    def write(self, path: str, content: str, *, push: bool = True) -> None:
        (self.tree / path).write_text(content)
        if push:
            self.git("add", path)
            self.git("commit", "--quiet", "-m", "x")
            self.git("push", "--quiet", "origin", "HEAD:main")

    def target(self, publish: str = "push", **changed: Any) -> dict[str, Any]:
        files = [{"path": "secret.yaml", "fingerprint": "f1"}]
        where = {"root": str(self.tree), "url": str(self.origin), "branch": "main", "token": "ghp_sesame"}
        return {"files": files, "publish": publish, **where, **changed}


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(tmp_path)


async def test_sealed_file_here_and_at_the_origin(work: Work) -> None:
    work.write("secret.yaml", sealed_file())
    (told,) = await evidence("sealed-files", work.target())
    assert told.startswith("secret.yaml: sealed for the current key, at ")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "is missing"),
        (sealed_file("old"), "is sealed for old"),
        ("{unclosed", "is missing, or not a sealed file"),
    ],
    ids=["missing", "stale", "unreadable"],
)
async def test_files_that_are_not_sealed_for_the_current_key(work: Work, content: str | None, told: str) -> None:
    if content:
        work.write("secret.yaml", content)
    assert told in observed(await findings("sealed-files", work.target()))


async def test_a_file_that_was_never_pushed_is_waited_for_when_pushing_is_automatic(work: Work) -> None:
    work.write("secret.yaml", sealed_file(), push=False)
    (found,) = await findings("sealed-files", work.target())
    assert f"secret.yaml is not on main at {work.origin}" in found.observed
    outcome = await noticed("sealed-files", work.target(), lambda: work.write("secret.yaml", sealed_file()))
    assert outcome.healthy


async def test_without_publishing_the_gate_stops_with_the_commands(work: Work) -> None:
    work.write("secret.yaml", sealed_file())
    (work.tree / "secret.yaml").write_text(sealed_file() + "\n")
    (found,) = await fatal("sealed-files", work.target("none"))
    assert "is another file on main" in found.observed
    assert found.look[0] == "git add -- secret.yaml"
    assert "git push origin HEAD:main" in found.look


async def test_a_branch_that_does_not_exist(work: Work) -> None:
    work.write("secret.yaml", sealed_file())
    assert "no branch other" in observed(await findings("sealed-files", work.target(branch="other")))


async def test_a_git_host_that_is_not_there(work: Work) -> None:
    work.write("secret.yaml", sealed_file())
    found = await findings("sealed-files", work.target(url="https://127.0.0.1:1/x.git"))
    assert "unreachable" in found[0].cause
    assert found[0].look[0].startswith("git ls-remote ")
    assert "ghp_sesame" not in repr(found)


async def test_a_git_host_that_never_answers(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git, "ATTEMPT", 0.0)
    work.write("secret.yaml", sealed_file())
    assert "no answer within" in observed(await findings("sealed-files", work.target()))


def test_a_refused_token_is_hopeless() -> None:
    branch = git.Branch(URL, "main", "t")
    trouble = branch._trouble(f"fatal: Authentication failed for '{URL}/'")
    assert trouble.hopeless
    branch.close()


def test_the_token_travels_in_the_environment_for_its_host_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", "/elsewhere")
    monkeypatch.delenv("GIT_SSL_CAINFO", raising=False)
    monkeypatch.setenv("SSL_CERT_FILE", "/bundle.pem")
    made = git.environment(URL, "sesame")
    assert made["GIT_CONFIG_KEY_1"] == f"http.{URL}.extraHeader"
    assert base64.b64decode(made["GIT_CONFIG_VALUE_1"].rpartition(" ")[2]) == b"git:sesame"
    assert (made["GIT_SSL_CAINFO"], "GIT_DIR" in made) == ("/bundle.pem", False)
    assert git.environment(URL, None)["GIT_CONFIG_COUNT"] == "1"


# G13, G14


async def test_flux_operator(api: FakeKubernetes) -> None:
    api.put(DEPLOYMENTS, deployment("flux-system", "flux-operator"))
    crd = custom("fluxinstances.fluxcd.controlplane.io", status={"conditions": [condition("Established")]})
    api.put(CRDS, crd)
    assert "Deployment flux-system/flux-operator: Available" in await evidence("flux-operator", target(api))
    api.put(DEPLOYMENTS, deployment("flux-system", "flux-operator", available=False))
    api.remove(CRDS, "fluxinstances.fluxcd.controlplane.io")
    first, second = await findings("flux-operator", target(api))
    assert "0 of 1 available" in first.observed
    assert "is not established" in second.observed


INSTANCES = "/apis/fluxcd.controlplane.io/v1/fluxinstances"
CONTROLLERS = ("source-controller", "kustomize-controller", "helm-controller", "notification-controller")


def controllers(api: FakeKubernetes, *, down: str = "") -> None:
    labels = {"app.kubernetes.io/part-of": "flux"}
    for name in CONTROLLERS:
        api.put(DEPLOYMENTS, deployment("flux-system", name, available=name != down, labels=labels))


async def test_flux_instance(api: FakeKubernetes) -> None:
    controllers(api)
    api.put(INSTANCES, custom("flux", "flux-system", status=ready()))
    assert "FluxInstance flux-system/flux: Ready" in await evidence("flux-instance", target(api))


async def test_flux_instance_that_is_not_there_or_not_ready(api: FakeKubernetes) -> None:
    controllers(api, down="helm-controller")
    api.put(INSTANCES)
    assert observed(await findings("flux-instance", target(api))) == "no FluxInstance"
    api.put(INSTANCES, custom("flux", "flux-system", status=ready("False", reason="ArtifactFailed", message="pull")))
    told = observed(await findings("flux-instance", target(api))).splitlines()
    assert told[0] == "FluxInstance flux-system/flux: Ready=False (ArtifactFailed: pull)"
    assert told[1].startswith("Deployment flux-system/helm-controller: 0 of 1 available")


async def test_ready_for_an_older_spec_is_not_ready(api: FakeKubernetes) -> None:
    controllers(api)
    item = custom("flux", "flux-system", status=ready(observedGeneration=1))
    item["metadata"]["generation"] = 2
    api.put(INSTANCES, item)
    assert await findings("flux-instance", target(api))


# G15


def synced(api: FakeKubernetes) -> dict[str, Any]:
    return target(api, url=URL, branch="main", path="gitops/clusters/infra")


def repository(status: Object | None = None, **spec: Any) -> Object:
    wanted = {"url": URL, "ref": {"name": "refs/heads/main"}, **spec}
    return custom(
        "flux-system", "flux-system", spec=wanted, status={**(status or ready()), "artifact": {"revision": REVISION}}
    )


def kustomization(name: str = "flux-system", status: Object | None = None, **spec: Any) -> Object:
    wanted = {"path": "./gitops/clusters/infra", **spec}
    return custom(name, "flux-system", spec=wanted, status={"lastAppliedRevision": REVISION, **(status or ready())})


def controller(*, available: bool = True) -> Object:
    labels = {"app.kubernetes.io/name": "sealed-secrets"}
    return deployment("kube-system", "sealed-secrets", available=available, labels=labels)


async def test_git_synced(api: FakeKubernetes) -> None:
    api.put(REPOSITORIES, repository())
    api.put(KUSTOMIZATIONS, kustomization())
    api.put(DEPLOYMENTS, controller())
    assert f"GitRepository at {REVISION}" in await evidence("git-synced", synced(api))


@pytest.mark.parametrize(
    ("source", "root", "told", "cause"),
    [
        (repository(ref={"branch": "develop"}), kustomization(), "no GitRepository reads", "no such sync"),
        (
            repository(ready("False", reason="GitOperationFailed", message="authentication required")),
            kustomization(),
            "GitRepository flux-system/flux-system: Ready=False (GitOperationFailed: authentication required)",
            "token in the cluster",
        ),
        (repository(), kustomization(path="./elsewhere"), "no Kustomization for gitops/clusters/infra", "sync"),
        (
            repository(),
            kustomization(status=ready("False", reason="ArtifactFailed", message="kustomization path not found: x")),
            "path not found",
            "not in the repository",
        ),
        (repository(), kustomization(status={**ready(), "lastAppliedRevision": "old"}), "applied old, Git is at", ""),
    ],
    ids=["no source", "refused", "no root", "wrong path", "behind"],
)
async def test_git_that_did_not_become_the_cluster(
    api: FakeKubernetes, source: Object, root: Object, told: str, cause: str
) -> None:
    api.put(REPOSITORIES, source)
    api.put(KUSTOMIZATIONS, root)
    api.put(DEPLOYMENTS, controller())
    (found,) = await findings("git-synced", synced(api))
    assert told in found.observed
    assert cause in found.cause


@pytest.mark.parametrize(
    ("items", "told"),
    [
        ([], "no sealed-secrets controller"),
        ([controller(available=False)], "kube-system/sealed-secrets is not Available"),
    ],
    ids=["missing", "down"],
)
async def test_without_a_controller_nothing_will_be_opened(api: FakeKubernetes, items: list[Object], told: str) -> None:
    api.put(REPOSITORIES, repository())
    api.put(KUSTOMIZATIONS, kustomization())
    api.put(DEPLOYMENTS, *items)
    assert told in observed(await findings("git-synced", synced(api)))


# G16


def sealed(name: str, status: str = "True", **more: Any) -> Object:
    return custom(name, "csi", status={"conditions": [condition("Synced", status, **more)]})


async def test_secrets_unsealed(api: FakeKubernetes) -> None:
    api.put(SEALED, sealed("token"))
    api.put(SECRETS, custom("token", "csi"))
    api.put(KUSTOMIZATIONS, kustomization(), kustomization("paused", ready("False"), suspend=True))
    assert "SealedSecret csi/token: open" in await evidence("secrets-unsealed", target(api))


async def test_a_secret_sealed_for_another_key_says_to_seal_it_again(api: FakeKubernetes) -> None:
    api.put(SEALED, sealed("token", "False", message="no key could decrypt secret (password)"))
    api.put(SECRETS)
    api.put(KUSTOMIZATIONS)
    (found,) = await findings("secrets-unsealed", target(api))
    assert "no key could decrypt" in found.observed
    assert "seal it again" in found.cause


async def test_what_keeps_the_tree_from_being_whole(api: FakeKubernetes) -> None:
    api.put(SEALED, sealed("token"))
    api.put(SECRETS)
    stalled = {"conditions": [condition("Stalled", reason="BuildFailed"), condition("Ready", "False")]}
    api.put(KUSTOMIZATIONS, kustomization("storage", dependsOn=[{"name": "sealed-secrets"}]))
    api.put(KUSTOMIZATIONS, kustomization("apps", stalled))
    told = observed(await findings("secrets-unsealed", target(api))).splitlines()
    assert told[0] == "SealedSecret csi/token: says Synced, but its Secret does not exist"
    assert told[1].startswith(
        "Kustomization flux-system/storage: its dependency flux-system/sealed-secrets does not exist"
    )
    assert told[2] == "Kustomization flux-system/apps: Stalled=True (BuildFailed)"


async def test_no_sealed_secret_is_not_the_same_as_all_open(api: FakeKubernetes) -> None:
    for path in (SEALED, SECRETS, KUSTOMIZATIONS):
        api.put(path)
    assert "no SealedSecret" in observed(await findings("secrets-unsealed", target(api)))


async def test_helm_releases(api: FakeKubernetes) -> None:
    path = "/apis/helm.toolkit.fluxcd.io/v2/helmreleases"
    api.put(path, custom("csi", "csi", status=ready()))
    assert await evidence("helm-releases", target(api)) == ("HelmRelease csi/csi: Ready",)
    api.put(path, custom("csi", "csi", status=ready("False", reason="InstallFailed")))
    assert "InstallFailed" in observed(await findings("helm-releases", target(api)))


# G17

DRIVER = "csi.proxmox.sinextra.dev"


def storage(api: FakeKubernetes) -> dict[str, Any]:
    named = {"namespace": "csi", "release": "proxmox-csi-plugin", "driver": DRIVER, "storage_class": "proxmox"}
    return target(api, nodes=NODES, **named)


def csi_node(name: str, **driver: Any) -> Object:
    return custom(name, spec={"drivers": [{"name": DRIVER, "topologyKeys": ["zone"], **driver}]})


@pytest.fixture
async def stored(api: FakeKubernetes) -> FakeKubernetes:
    taint = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
    api.put("/api/v1/nodes", node_object("cp-1", "127.0.0.1", taints=[taint]), node_object("w-1", "127.0.0.2"))
    api.put(DEPLOYMENTS, deployment("csi", "proxmox-csi-plugin-controller"))
    api.put(DAEMON_SETS, daemon_set("csi", "proxmox-csi-plugin-node", 1))
    api.put("/api/v1/pods")
    api.put("/apis/storage.k8s.io/v1/csidrivers", custom(DRIVER))
    api.put("/apis/storage.k8s.io/v1/csinodes", csi_node("w-1"), custom("cp-1"))
    api.put("/apis/storage.k8s.io/v1/storageclasses", custom("proxmox", provisioner=DRIVER))
    return api


async def test_storage_on_every_schedulable_node(stored: FakeKubernetes) -> None:
    told = await evidence("storage", storage(stored))
    assert told[-1] == f"w-1: {DRIVER} with topology"


async def test_everything_that_storage_lacks_is_named(stored: FakeKubernetes) -> None:
    stored.put(DEPLOYMENTS, deployment("csi", "proxmox-csi-plugin-controller", available=False))
    stored.put(DAEMON_SETS, daemon_set("csi", "proxmox-csi-plugin-node", 1, ready=0))
    stored.remove("/apis/storage.k8s.io/v1/csidrivers", DRIVER)
    stored.remove("/apis/storage.k8s.io/v1/storageclasses", "proxmox")
    stored.put("/apis/storage.k8s.io/v1/csinodes", custom("w-1"))
    found = await findings("storage", storage(stored))
    told = observed(found)
    assert "401 in its log" in found[0].cause
    assert "desired 1, ready 0; 1 schedulable nodes" in told
    assert f"no CSIDriver {DRIVER}" in told
    assert "no StorageClass proxmox" in told
    assert f"{DRIVER} is not registered on this node" in told


async def test_a_node_plugin_without_topology_and_a_class_of_another_driver(stored: FakeKubernetes) -> None:
    stored.put("/apis/storage.k8s.io/v1/csinodes", csi_node("w-1", topologyKeys=None))
    stored.put("/apis/storage.k8s.io/v1/storageclasses", custom("proxmox", provisioner="other"))
    stored.remove(DAEMON_SETS, "proxmox-csi-plugin-node", "csi")
    told = observed(await findings("storage", storage(stored)))
    assert "reports no topology" in told
    assert f"belongs to other, not to {DRIVER}" in told
    assert "proxmox-csi-plugin-node: missing" in told


async def test_storage_that_no_node_could_use(stored: FakeKubernetes) -> None:
    stored.put("/api/v1/nodes", node_object("w-1", "127.0.0.2", unschedulable=True))
    assert "no schedulable node" in observed(await findings("storage", storage(stored)))


# G18


def final(api: FakeKubernetes, *more: Any) -> dict[str, Any]:
    everyone = target(api, nodes=NODES)
    questions = [
        {"gate": "G7", "probe": "nodes-registered", "target": everyone},
        {"gate": "G10", "probe": "nodes-ready", "target": everyone},
    ]
    return {"gates": [*questions, *more]}


async def test_everything_once_more(api: FakeKubernetes) -> None:
    all_nodes(api)
    told = await evidence("final", final(api))
    assert told[0] == "G7: 2 nodes registered: cp-1, w-1"
    assert told[-1] == "G10: w-1: Ready, schedulable"


async def test_what_broke_in_the_meantime_names_its_gate_and_recovers(api: FakeKubernetes) -> None:
    all_nodes(api)
    api.put("/api/v1/nodes", node_object("w-1", "127.0.0.2", ready="False"))
    (found,) = await findings("final", final(api))
    assert (found.subject, found.observed) == ("w-1", "G10: Ready=False (KubeletNotReady)")
    mend = lambda: api.put("/api/v1/nodes", node_object("w-1", "127.0.0.2"))  # noqa: E731
    assert (await noticed("final", final(api), mend)).healthy


async def test_what_cannot_mend_ends_the_final_gate_and_leaves_evidence(api: FakeKubernetes) -> None:
    all_nodes(api)
    api.put("/api/v1/pods")
    api.put("/api/v1/events")
    foreign = {"nodes": NODES, "kubeconfig": api.kubeconfig(authority=TestAuthority("other"))}
    outcome = await run("final", final(api, {"gate": "G9", "probe": "nodes-ready", "target": foreign}), 5, untold)
    assert not outcome.healthy
    assert "G10 node conditions" in outcome.extra
    assert "G9 node conditions" not in outcome.extra
