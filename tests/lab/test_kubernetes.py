"""A cluster from a hand-made machine config, on the real control plane programs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml

from lab.faults import Fault, Faults
from lab.kubernetes import AlreadyBootstrapped, Cluster, EndpointPorts
from lab.kubernetes.api import Api, ApiError
from lab.kubernetes.process import free_port
from lab.kubernetes.workloads import within_pod
from lab.pace import Pace
from lab.request_log import RequestLog
from lab.toolchain.programs import Programs
from tests.lab.kubernetes_world import World, condition, definitions, named, until, waiting
from tests.lab_kubernetes import CILIUM_CONFIG, agent_pod, machine_config, node

pytestmark = [pytest.mark.lab, pytest.mark.asyncio(loop_scope="module")]

DEADLINE = 60.0
ROLE, ZONE = "node-role.kubernetes.io/control-plane", "topology.kubernetes.io/zone"
STATIC_PODS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
AGENTS = "/apis/apps/v1/namespaces/kube-system/daemonsets"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CONFIG_MAPS = "/api/v1/namespaces/kube-system/configmaps"
PODS = "/api/v1/namespaces/default/pods"


class ControlPlaneOnly:
    """A toolchain that has built nothing but the control plane."""

    def __init__(self) -> None:
        self._programs = Programs()

    def path(self, name: str) -> Path:
        if name not in {"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"}:
            raise LookupError(f"{name} is not there yet")
        return self._programs.path(name)

    def module_directory(self, module: str, version: str) -> Path:
        raise LookupError(f"{module} {version}")


async def refuses(host: str, port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection(host, port)
    except OSError:
        return True
    writer.close()
    return False


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    directory = tmp_path_factory.mktemp("cluster")
    faults, ports = Faults(), EndpointPorts(api=free_port(), kubeprism=free_port())
    log = RequestLog(directory / "requests.jsonl")
    cluster = Cluster(
        directory=directory, programs=ControlPlaneOnly(), faults=faults, pace=Pace(), log=log, ports=ports
    )
    try:
        assert await refuses("127.0.0.11", ports.api)
        config = machine_config()
        await cluster.bootstrap("cp-1", "127.0.0.11", config)
        await cluster.join("cp-1", "127.0.0.11")
        await cluster.start_kubelet(node(config=config))
        worker = machine_config("worker")
        worker["machine"] |= {
            "kubelet": {
                "image": "ghcr.io/siderolabs/kubelet:v1.36.4",
                "extraArgs": {"provider-id": "proxmox://home/121", "register-with-taints": "spot=yes:NoSchedule"},
            },
            "nodeLabels": {"topology.kubernetes.io/region": "home", "topology.kubernetes.io/zone": "atlas"},
        }
        worker["cluster"] = config["cluster"]
        await cluster.start_kubelet(node("w-1", "127.0.0.21", "worker", vmid=121, config=worker))
        await asyncio.wait_for(cluster.ready.wait(), DEADLINE)
        secrets = directory / "secrets"
        url = f"https://127.0.0.11:{ports.api}"
        api = Api(url, ca=secrets / "ca.crt", certificate=secrets / "lab.crt", key=secrets / "lab.key")
        here = World(cluster, faults, ports, api)
        await until(lambda: _answers("127.0.0.11", ports.api), what="the control plane's own address")
        yield here
        await api.close()
    finally:
        await cluster.close()


async def _answers(host: str, port: int) -> bool:
    return not await refuses(host, port)


async def test_nodes_register_as_configured_and_are_not_ready_without_a_network(world: World) -> None:
    worker = await until(lambda: _labelled(world, "w-1", ZONE), what="the worker's labels")
    assert worker["spec"]["providerID"] == "proxmox://home/121"
    assert {"key": "spot", "value": "yes", "effect": "NoSchedule"} in worker["spec"]["taints"]
    ready = next(item for item in worker["status"]["conditions"] if item["type"] == "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "KubeletNotReady")
    assert "NetworkPluginNotReady" in ready["message"]
    control_plane = await until(lambda: _labelled(world, "cp-1", ROLE), what="the control plane's role")
    assert any(taint["key"] == ROLE for taint in control_plane["spec"]["taints"])


async def _labelled(world: World, name: str, label: str) -> dict[str, Any] | None:
    found = await world.api.find(f"/api/v1/nodes/{name}")
    return found if label in ((found or {}).get("metadata", {}).get("labels") or {}) else None


async def test_a_second_bootstrap_is_refused(world: World) -> None:
    with pytest.raises(AlreadyBootstrapped):
        await world.cluster.bootstrap("cp-1", "127.0.0.11", machine_config())


async def test_kubectl_works_with_the_admin_kubeconfig(world: World, tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    text = await world.cluster.kubeconfig(f"https://127.0.0.11:{world.ports.api}")
    file.write_text(text)
    document = yaml.safe_load(text)
    assert document["clusters"][0]["name"] == "lab"
    assert document["current-context"] == "admin@lab"
    command = [ControlPlaneOnly().path("kubectl"), "--kubeconfig", file, "auth", "can-i", "*", "*"]
    child = await asyncio.create_subprocess_exec(*map(str, command), stdout=asyncio.subprocess.PIPE)
    output, _ = await child.communicate()
    assert output.strip() == b"yes"


async def test_static_pods_are_mirrored_for_the_control_plane_only(world: World) -> None:
    async def ready() -> list[dict[str, Any]]:
        pods = [pod for app in STATIC_PODS for pod in await world.pods("kube-system", f"k8s-app={app}")]
        return pods if len(pods) == 3 and all(condition(pod, "Ready") == "True" for pod in pods) else []

    pods = await until(ready, what="three mirror pods")
    assert {pod["spec"]["nodeName"] for pod in pods} == {"cp-1"}


async def test_a_second_control_plane_is_named_by_the_certificate_and_goes_when_it_leaves(world: World) -> None:
    await world.cluster.join("cp-2", "127.0.0.12")
    await until(lambda: _answers("127.0.0.12", world.ports.api), what="the second address")
    secrets = world.cluster.directory / "secrets"
    second = Api(
        f"https://127.0.0.12:{world.ports.api}",
        ca=secrets / "ca.crt",
        certificate=secrets / "lab.crt",
        key=secrets / "lab.key",
    )
    assert await second.ready()
    await second.close()
    await world.cluster.leave("cp-2")
    assert await refuses("127.0.0.12", world.ports.api)


async def test_the_vip_dies_with_its_fault_and_comes_back(world: World) -> None:
    await world.cluster.claim_vip("127.0.0.10")
    await until(lambda: _answers("127.0.0.10", world.ports.api), what="the VIP")
    world.faults.add(Fault(name="vip-dead"))
    await until(lambda: refuses("127.0.0.10", world.ports.api), what="the VIP's end")
    world.faults.remove("vip-dead")
    await until(lambda: _answers("127.0.0.10", world.ports.api), what="the VIP again")


def daemon_set(name: str, pod: dict[str, Any]) -> dict[str, Any]:
    labels = {"k8s-app": "cilium", "release": name}
    spec = {**pod["spec"], "tolerations": [{"operator": "Exists"}], "nodeSelector": {"kubernetes.io/os": "linux"}}
    template = {"metadata": {"labels": labels}, "spec": spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": "kube-system"},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }


async def test_an_agent_that_asks_for_sys_module_crashes_and_the_node_stays_not_ready(world: World) -> None:
    await world.api.create(CONFIG_MAPS, _config_map())
    pod = agent_pod()
    pod["spec"]["containers"][0]["securityContext"]["capabilities"]["add"].append("SYS_MODULE")
    await world.api.create(AGENTS, daemon_set("bad", pod))
    pods = await until(lambda: _crashed(world), what="crash loops on both nodes")
    assert all("SYS_MODULE" in waiting(pod)["message"] for pod in pods)
    assert condition(await world.node("w-1"), "Ready") == "False"
    await world.api.delete(f"{AGENTS}/bad")
    await until(lambda: _none(world, "release=bad"), what="the pods' removal")


async def _crashed(world: World) -> list[dict[str, Any]]:
    pods = await world.pods("kube-system", "release=bad")
    crashed = [pod for pod in pods if waiting(pod).get("reason") == "CrashLoopBackOff"]
    return crashed if len(crashed) == 2 else []


async def _none(world: World, label: str) -> bool:
    return not await world.pods("kube-system", label)


def _config_map() -> dict[str, Any]:
    metadata = {"name": "cilium-config", "namespace": "kube-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": CILIUM_CONFIG}


async def test_nodes_become_ready_once_agents_run_and_their_resources_are_registered(world: World) -> None:
    await world.api.create(AGENTS, daemon_set("good", agent_pod(serviceAccountName="cilium")))
    await world.api.create("/api/v1/namespaces/kube-system/serviceaccounts", named("ServiceAccount", "cilium"))
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "cilium"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "cilium", "namespace": "kube-system"}],
    }
    await world.api.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
    pods = await until(lambda: _running(world), what="running agents")
    assert all(condition(pod, "Ready") == "False" for pod in pods)
    for definition in definitions():
        await world.api.create(DEFINITIONS, definition)
    for name in ("cp-1", "w-1"):
        await until(partial(_ready, world, name), what=f"node {name}")
        assert (await world.api.get(f"/apis/cilium.io/v2/ciliumnodes/{name}"))["spec"]["ipam"]["podCIDRs"]


async def _running(world: World) -> list[dict[str, Any]]:
    pods = await world.pods("kube-system", "release=good")
    return pods if len(pods) == 2 and all(pod["status"]["phase"] == "Running" for pod in pods) else []


async def _ready(world: World, name: str) -> bool:
    return condition(await world.node(name), "Ready") == "True"


async def test_dns_pods_get_addresses_from_their_nodes_ranges(world: World) -> None:
    async def ready() -> list[dict[str, Any]]:
        pods = await world.pods("kube-system", "k8s-app=kube-dns")
        return pods if len(pods) == 2 and all(condition(pod, "Ready") == "True" for pod in pods) else []

    for pod in await until(ready, what="CoreDNS"):
        prefix = (await world.node(pod["spec"]["nodeName"]))["spec"]["podCIDR"].rpartition(".")[0]
        assert pod["status"]["podIP"].startswith(f"{prefix}.")


def _pod(name: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": spec.pop("image", "busybox"), **spec.pop("container", {})}
    tolerations = [{"operator": "Exists"}]
    return named("Pod", name, "default", spec={"containers": [container], "tolerations": tolerations, **spec})


async def test_a_pod_waits_for_the_secret_it_mounts(world: World) -> None:
    volumes = [{"name": "token", "secret": {"secretName": "late"}}]
    await world.api.create(PODS, _pod("mounts", volumes=volumes))

    async def creating() -> bool:
        pod = await world.api.get(f"{PODS}/mounts")
        events = await world.api.get("/api/v1/namespaces/default/events")
        failed = [event for event in events["items"] if event["reason"] == "FailedMount"]
        return waiting(pod).get("reason") == "ContainerCreating" and bool(failed)

    await until(creating, what="ContainerCreating with an event")
    await world.api.create("/api/v1/namespaces/default/secrets", named("Secret", "late", "default"))
    await until(lambda: _phase(world, "mounts", "Running"), what="the pod")


async def _phase(world: World, name: str, phase: str) -> bool:
    found: bool = (await world.api.get(f"{PODS}/{name}"))["status"].get("phase") == phase
    return found


async def test_a_pod_that_should_run_to_completion_does_not_pretend_to(world: World) -> None:
    await world.api.create(PODS, _pod("once", restartPolicy="Never"))
    await until(lambda: _phase(world, "once", "Running"), what="the pod")
    assert any("default/once" in line and "completion" in line for line in world.cluster.not_shown())


async def test_an_image_whose_program_is_missing_is_never_ready(world: World) -> None:
    await world.api.create(PODS, _pod("flux", image="ghcr.io/fluxcd/source-controller:v1.9.4"))

    async def failed() -> dict[str, Any]:
        state = waiting(await world.api.get(f"{PODS}/flux"))
        return state if state.get("reason") == "ErrImagePull" else {}

    state = await until(failed, what="ErrImagePull")
    assert "source-controller" in state["message"]


async def test_a_deleted_pod_goes(world: World) -> None:
    await world.api.delete(f"{PODS}/once")

    async def gone() -> bool:
        return await world.api.find(f"{PODS}/once") is None

    await until(gone, what="the pod's end")


async def test_a_crashing_agent_is_unready_while_its_fault_lasts(world: World) -> None:
    world.faults.add(Fault(name="cilium-agent-crashloop", node="w-1"))

    async def crashing(expected: bool) -> bool:
        pods = await world.pods("kube-system", "release=good")
        pod = next(pod for pod in pods if pod["spec"]["nodeName"] == "w-1")
        return (condition(pod, "Ready") == "False") == expected

    await until(lambda: crashing(True), what="the crash")
    world.faults.remove("cilium-agent-crashloop")
    await until(lambda: crashing(False), what="the recovery")


async def test_a_cordoned_node_is_uncordoned_when_the_fault_goes(world: World) -> None:
    async def cordoned(expected: bool) -> bool:
        return bool((await world.node("w-1"))["spec"].get("unschedulable")) == expected

    world.faults.add(Fault(name="node-cordoned", node="w-1"))
    await until(lambda: cordoned(True), what="the cordon")
    world.faults.remove("node-cordoned")
    await until(lambda: cordoned(False), what="its end")


async def test_without_the_label_it_selects_by_a_daemon_set_has_no_pod_on_a_node(world: World) -> None:
    async def agents(expected: set[str]) -> bool:
        pods = await world.pods("kube-system", "release=good")
        return {pod["spec"].get("nodeName") for pod in pods} == expected

    world.faults.add(Fault(name="cilium-agent-missing", node="w-1"))
    await until(lambda: agents({"cp-1"}), what="the agent's absence")
    world.faults.remove("cilium-agent-missing")
    await until(lambda: agents({"cp-1", "w-1"}), what="its return")


async def test_a_stray_pod_range_is_put_right_when_the_fault_goes(world: World) -> None:
    config = machine_config("worker")
    world.faults.add(Fault(name="pod-cidr-mismatch", node="w-8"))
    await world.cluster.start_kubelet(node("w-8", "127.0.0.28", "worker", vmid=128, config=config))

    async def agent() -> dict[str, Any]:
        pods = await world.pods("kube-system", "release=good")
        return next((waiting(pod) for pod in pods if pod["spec"].get("nodeName") == "w-8"), {})

    state = await until(agent, what="the agent's crash")
    assert "outside the machine config's podSubnets" in state["message"]
    world.faults.remove("pod-cidr-mismatch")

    async def inside() -> bool:
        found = await world.api.find("/api/v1/nodes/w-8")
        return str((found or {}).get("spec", {}).get("podCIDR")).startswith("10.244.")

    await until(inside, what="a range of the cluster's own")
    await world.cluster.stop_kubelet("w-8")
    await world.api.delete("/api/v1/nodes/w-8")


async def test_a_worker_cannot_give_itself_a_role(world: World) -> None:
    """NodeRestriction refuses, and Talos's whole patch with it."""
    config = machine_config("worker")
    config["machine"]["nodeLabels"] = {"node-role.kubernetes.io/worker": "", "harmless": "yes"}
    await world.cluster.start_kubelet(node("w-9", "127.0.0.29", "worker", vmid=129, config=config))

    async def refused() -> bool:
        log = world.cluster.directory / "requests.jsonl"
        return "w-9" in (text := log.read_text()) and "node-role.kubernetes.io/worker" in text

    await until(refused, what="the refusal")
    assert "harmless" not in (await world.node("w-9"))["metadata"]["labels"]
    await world.cluster.stop_kubelet("w-9")
    await world.api.delete("/api/v1/nodes/w-9")
    with pytest.raises(ApiError):
        await world.node("w-9")


async def test_a_program_that_knows_only_mounted_files_finds_them(tmp_path: Path) -> None:
    """And only that program does: outside its own mount namespace nothing has changed."""
    (tmp_path / "token").write_text("a token")
    place = "/var/run/secrets/kubernetes.io/serviceaccount/token"
    program, arguments = within_pod(Path("/bin/cat"), [place], tmp_path)
    child = await asyncio.create_subprocess_exec(program, *arguments, stdout=asyncio.subprocess.PIPE)
    output, _ = await child.communicate()
    assert output == b"a token"
    assert not Path(place).exists()  # noqa: ASYNC240 - one look
