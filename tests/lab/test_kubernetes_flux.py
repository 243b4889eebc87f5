"""Flux for real: its operator installs its controllers, and all of them run as the pods that stand for them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml

from lab.toolchain.programs import Programs
from tests.lab.kubernetes_world import (
    World,
    admin,
    bring_up_network,
    condition,
    named,
    single_node,
    until,
    workload,
)

pytestmark = [pytest.mark.lab, pytest.mark.asyncio(loop_scope="module")]

VERSION = "v0.58.1"
CONTROLLERS = ["source-controller", "kustomize-controller", "helm-controller", "notification-controller"]
INSTANCES = "/apis/fluxcd.controlplane.io/v1/namespaces/flux-system/fluxinstances"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    programs = Programs()
    for name in ("flux-operator", *CONTROLLERS):
        await programs.resolve(name)
    module = programs.module_directory("github.com/controlplaneio-fluxcd/flux-operator", VERSION)
    async with single_node(tmp_path_factory.mktemp("cluster"), programs) as made:
        await bring_up_network(made)
        await install(made, module)
        yield made


async def install(world: World, module: Path) -> None:
    for file in sorted((module / "config" / "crd" / "bases").glob("*.yaml")):
        definition = yaml.safe_load(file.read_text())
        await world.api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "flux-system"}}
    await world.api.create("/api/v1/namespaces", namespace)
    account = named("ServiceAccount", "flux-operator", "flux-system")
    await world.api.create("/api/v1/namespaces/flux-system/serviceaccounts", account)
    binding = admin("flux-operator", "flux-system")
    await world.api.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
    await world.api.create("/apis/apps/v1/namespaces/flux-system/deployments", operator())


def operator() -> dict[str, Any]:
    container = {
        "name": "manager",
        "image": f"ghcr.io/controlplaneio-fluxcd/flux-operator:{VERSION}",
        "env": [{"name": "RUNTIME_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}],
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": 8081}},
        "volumeMounts": [{"name": "temp", "mountPath": "/tmp"}],  # noqa: S108
    }
    pod = {
        "serviceAccountName": "flux-operator",
        "containers": [container],
        "volumes": [{"name": "temp", "emptyDir": {}}],
    }
    return workload("Deployment", "flux-operator", {"app": "flux-operator"}, pod, "flux-system")


async def test_the_operator_installs_flux_and_says_that_it_is_ready(world: World) -> None:
    instance = {
        "apiVersion": "fluxcd.controlplane.io/v1",
        "kind": "FluxInstance",
        "metadata": {"name": "flux", "namespace": "flux-system"},
        "spec": {"distribution": {"version": "2.9.4", "registry": "ghcr.io/fluxcd"}, "components": CONTROLLERS},
    }

    async def created() -> bool:
        served = await world.api.find("/apis/fluxcd.controlplane.io/v1")
        return served is not None and bool(await world.api.create(INSTANCES, instance))

    await until(created, what="the FluxInstance kind")

    async def ready() -> bool:
        return condition(await world.api.get(f"{INSTANCES}/flux"), "Ready") == "True"

    await until(ready, what="the FluxInstance")
    pods = (await world.api.get("/api/v1/namespaces/flux-system/pods"))["items"]
    assert {pod["metadata"]["labels"]["app"] for pod in pods} == {"flux-operator", *CONTROLLERS}


async def test_a_controller_works_with_its_own_service_account(world: World) -> None:
    """A repository that nobody serves: source-controller says so, with the rights of its own service account."""
    repository = {
        "apiVersion": "source.toolkit.fluxcd.io/v1",
        "kind": "GitRepository",
        "metadata": {"name": "nowhere", "namespace": "flux-system"},
        "spec": {"interval": "1h", "url": "https://127.0.0.1:1/nowhere.git", "ref": {"branch": "main"}},
    }
    path = "/apis/source.toolkit.fluxcd.io/v1/namespaces/flux-system/gitrepositories"
    await world.api.create(path, repository)

    async def failed() -> bool:
        return condition(await world.api.get(f"{path}/nowhere"), "Ready") == "False"

    await until(failed, what="the failure to fetch it")
