"""A real program that runs on the host for as long as the pod that stands for it runs."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import httpx

from lab.kubernetes.api import Api, Object, node_actor
from lab.kubernetes.pki import write_private
from lab.kubernetes.pod_inputs import PodInputs, expand
from lab.kubernetes.process import Process, free_port
from lab.kubernetes.secrets_directory import kubeconfig
from lab.kubernetes.workloads import Workload, command_line, mounts, moved, probe, within_pod

TOKEN_SECONDS = 7 * 24 * 3600
PROBE_SECONDS = 2.0


class SharedPorts:
    """Ports by which workloads know each other; the others are each pod's own."""

    def __init__(self) -> None:
        self._ports: dict[tuple[str, int], int] = {}

    def __call__(self, program: str, port: int) -> int:
        return self._ports.setdefault((program, port), free_port())


class PodProgram:
    def __init__(
        self,
        *,
        api: Api,
        url: str,
        ca: bytes,
        directory: Path,
        data: Path | None,
        trust: Path | None,
        shared: SharedPorts,
    ) -> None:
        self.process: Process | None = None
        self._api = api
        self._url = url
        self._ca = ca
        self._directory = directory
        self._data = data
        """What the program's image holds beside the program."""
        self._trust = trust
        self._shared = shared
        self._own = SharedPorts()
        self._probe: str | None = None

    async def start(self, pod: Object, container: Object, workload: Workload, program: Path, inputs: PodInputs) -> None:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = self._directory / "tmp"
        temporary.mkdir(exist_ok=True)
        if self._data and not (self._directory / "data").exists():
            (self._directory / "data").symlink_to(self._data)
        mounted = await self._write_credentials(pod)
        volumes = inputs.write_volumes(self._directory / "volumes")
        environment = inputs.environment(container)
        places = mounts(container, volumes)
        given = [moved(expand(text, environment), places) for text in container.get("args") or []]
        ports = self._ports_for(workload)
        line = command_line(workload, given, ports=ports, directory=self._directory)
        self._probe = probe(container, workload, ports)
        program, line = within_pod(program, line, mounted)
        shown = {name: moved(text, places) for name, text in environment.items()} | dict(workload.environment)
        log = self._directory.with_name(self._directory.name + ".log")
        self.process = Process(
            program, line, log=log, environment={**shown, **self._environment(pod, workload)}, directory=self._directory
        )
        await self.process.start()

    async def ready(self) -> bool:
        """What its readiness probe says; a program without one is ready as soon as it runs."""
        if self.process is None or self.process.exit_code is not None:
            return False
        if self._probe is None:
            return True
        async with httpx.AsyncClient(timeout=PROBE_SECONDS, trust_env=False) as client:
            try:
                response = await client.get(self._probe)
            except httpx.TransportError:
                return False
        return 200 <= response.status_code < 400

    async def stop(self) -> None:
        if self.process:
            await self.process.stop()

    def _ports_for(self, workload: Workload) -> SharedPorts:
        """Flux's controllers find each other by a port that stays; two replicas of an operator need two."""
        return self._own if workload.program == "cilium-operator" else self._shared

    def _environment(self, pod: Object, workload: Workload) -> dict[str, str]:
        """What a container finds without being told: its API server, its namespace, a writable place."""
        temporary = str(self._directory / "tmp")
        trust = {"SSL_CERT_FILE": str(self._trust)} if self._trust else {}
        own = {"POD_NAMESPACE": pod["metadata"]["namespace"], "TMPDIR": temporary, "HOME": temporary}
        return {**trust, **own, **self._api_server(workload)}

    def _api_server(self, workload: Workload) -> dict[str, str]:
        if workload.outside:
            return {"KUBECONFIG": str(self._directory / "kubeconfig")}
        url = urlsplit(self._url)
        return {"KUBERNETES_SERVICE_HOST": url.hostname or "", "KUBERNETES_SERVICE_PORT": str(url.port)}

    async def _write_credentials(self, pod: Object) -> Path:
        """What a kubelet mounts into every container: the way to the API server that all these programs know."""
        account = pod["spec"].get("serviceAccountName") or "default"
        token = await self._token(pod, account)
        mounted = self._directory / "serviceaccount"
        mounted.mkdir(exist_ok=True)
        namespace = pod["metadata"]["namespace"].encode()
        for name, content in (("token", token.encode()), ("ca.crt", self._ca), ("namespace", namespace)):
            write_private(mounted / name, content)
        text = kubeconfig(cluster="lab", user=account, server=self._url, ca=self._ca, credentials={"token": token})
        write_private(self._directory / "kubeconfig", text.encode())
        return mounted

    async def _token(self, pod: Object, account: str) -> str:
        """The token that a kubelet would mount, asked for as the kubelet: RBAC decides what it is worth."""
        metadata, node = pod["metadata"], pod["spec"]["nodeName"]
        bound = {"kind": "Pod", "apiVersion": "v1", "name": metadata["name"], "uid": metadata["uid"]}
        request: Object = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": TOKEN_SECONDS, "boundObjectRef": bound},
        }
        path = f"/api/v1/namespaces/{metadata['namespace']}/serviceaccounts/{account}/token"
        answer = await self._api.create(path, request, actor=node_actor(node))
        return str(answer["status"]["token"])
