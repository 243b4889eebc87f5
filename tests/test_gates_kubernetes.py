"""The Kubernetes client and its watches, against a local API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gates import watch
from gates.kubernetes import Kubeconfig, Kubernetes, MissingError
from gates.trouble import TroubleError
from gates.watch import Kind, Watched
from tests.gates_kubernetes import FakeKubernetes, serving
from tests.gates_objects import NODES, all_nodes, custom, node_object
from tests.gates_runs import PATIENCE, evidence, fatal, findings, look, noticed, observed, until
from tests.talos_pki import TestAuthority

NODE_PATH = "/api/v1/nodes"


@pytest.fixture
async def api() -> AsyncIterator[FakeKubernetes]:
    async with serving() as server:
        yield server


async def test_credentials_are_not_shown_by_the_kubeconfig(api: FakeKubernetes) -> None:
    config = Kubeconfig.parse(api.kubeconfig())
    assert config.key is not None
    assert config.key not in repr(config)


async def test_a_bearer_token_is_enough_to_ask() -> None:
    text = "\n".join(
        [
            "current-context: c",
            "contexts: [{name: c, context: {cluster: k, user: u}}]",
            "clusters: [{name: k, cluster: {server: 'https://127.0.0.1:1', certificate-authority-data: CA}}]",
            "users: [{name: u, user: {token: sesame}}]",
        ]
    )
    api = FakeKubernetes()
    ca = api.kubeconfig().split("certificate-authority-data: ")[1].split("\n")[0]
    client = Kubernetes(text.replace("CA", ca))
    assert client._http.headers["Authorization"] == "Bearer sesame"
    await client.close()


async def test_ambient_kubeconfig_is_never_read(
    api: FakeKubernetes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hostile = tmp_path / "config"
    hostile.write_text(FakeKubernetes().kubeconfig(port=1))
    monkeypatch.setenv("KUBECONFIG", str(hostile))
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("HOME", str(tmp_path))
    all_nodes(api)
    target = {"nodes": NODES, "kubeconfig": api.kubeconfig()}
    assert "2 nodes registered: cp-1, w-1" in await evidence("nodes-registered", target)
    assert api.requests


async def test_a_foreign_ca_fails_at_once(api: FakeKubernetes) -> None:
    target = {"nodes": NODES, "kubeconfig": api.kubeconfig(authority=TestAuthority("other"))}
    found = await fatal("nodes-registered", target)
    assert "not signed by the expected CA" in observed(found)


async def test_refused_credentials_fail_at_once(api: FakeKubernetes) -> None:
    api.failures[NODE_PATH] = (401, '{"message": "Unauthorized"}')
    found = await fatal("nodes-registered", {"nodes": NODES, "kubeconfig": api.kubeconfig()})
    assert "401 Unauthorized" in observed(found)


async def test_a_dead_server_is_waited_for() -> None:
    api = FakeKubernetes()
    found = await findings("nodes-registered", {"nodes": NODES, "kubeconfig": api.kubeconfig(port=1)})
    assert "connection refused" in observed(found)


async def test_an_answer_without_a_message_is_shown_as_it_is(api: FakeKubernetes) -> None:
    api.failures[NODE_PATH] = (503, "<html>not now</html>")
    found = await findings("nodes-registered", {"nodes": NODES, "kubeconfig": api.kubeconfig()})
    assert "503 <html>not now</html>" in observed(found)


async def test_a_missing_path_has_its_own_error(api: FakeKubernetes) -> None:
    client = Kubernetes(api.kubeconfig())
    with pytest.raises(MissingError):
        await client.get("/apis/none/v1/things")
    await client.close()


async def test_watch_follows_additions_changes_and_removals(
    api: FakeKubernetes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "FIRST_RETRY", 0.01)
    api.put(NODE_PATH, node_object("a", "10.0.0.1"))
    client = Kubernetes(api.kubeconfig())
    watched = Watched(client, [Kind(path=NODE_PATH, name="nodes")])
    await watched.start()
    await until(lambda: api.watching == 1)

    def names() -> set[str]:
        return {item["metadata"]["name"] for item in watched.objects("nodes")}

    api.put(NODE_PATH, node_object("b", "10.0.0.2"))
    await until(lambda: names() == {"a", "b"})
    api.remove(NODE_PATH, "a")
    await until(lambda: names() == {"b"})
    watched.settle()
    api.bookmark()
    api.break_watches({"code": 410, "message": "too old resource version"})
    api.collections[NODE_PATH][("", "c")] = node_object("c", "10.0.0.3")
    await until(lambda: names() == {"b", "c"})
    await asyncio.wait_for(watched.changed(), PATIENCE)
    await watched.close()
    await client.close()


async def test_a_server_that_goes_away_shows_as_trouble_and_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "FIRST_RETRY", 0.01)
    api = FakeKubernetes()
    await api.listen()
    all_nodes(api)
    client = Kubernetes(api.kubeconfig())
    watched = Watched(client, [Kind(path=NODE_PATH, name="nodes")])
    await watched.start()
    await until(lambda: api.watching == 1)
    await api.close()
    await until(lambda: bool(watched.troubles()))
    await api.listen()
    await until(lambda: not watched.troubles())
    await watched.close()
    await client.close()
    await api.close()


async def test_a_kind_that_comes_later_is_found(api: FakeKubernetes) -> None:
    target = {"kubeconfig": api.kubeconfig()}
    assert "does not serve /apis/helm.toolkit.fluxcd.io/v2/helmreleases" in observed(
        await findings("helm-releases", target)
    )
    outcome = await noticed("helm-releases", target, lambda: api.put("/apis/helm.toolkit.fluxcd.io/v2/helmreleases"))
    assert outcome.healthy


async def test_an_optional_kind_may_be_absent(api: FakeKubernetes) -> None:
    client = Kubernetes(api.kubeconfig())
    watched = Watched(client, [Kind(path="/apis/none/v1/things", name="things", optional=True)])
    await watched.refresh()
    assert (watched.troubles(), watched.objects("things")) == ([], [])
    await client.close()


async def test_watch_refused_by_the_server_is_trouble(api: FakeKubernetes) -> None:
    client = Kubernetes(api.kubeconfig())
    with pytest.raises(TroubleError):
        async for _ in client.watch("/apis/none/v1/things", "1", seconds=1, query={}):
            pass
    await client.close()


async def test_secrets_are_asked_for_their_metadata_only(api: FakeKubernetes) -> None:
    for path in ("namespaces", "secrets", "configmaps"):
        api.put(f"/api/v1/{path}", custom("x", "default"))
    target = {"kubeconfig": api.kubeconfig(), "namespaces": [], "secrets": [], "configmaps": []}
    await look("prerequisites", target)
    asked = [line for line in api.requests if "/secrets" in line]
    assert asked
    assert all("as=PartialObjectMetadataList" in line for line in asked)
