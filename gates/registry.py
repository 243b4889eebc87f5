"""Every probe by the name its gate calls it, and the way to run one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gates import (
    cilium,
    cloud_provider,
    crds,
    dns,
    etcd,
    flux,
    gitops,
    kube_api,
    kubelets,
    mesh,
    nodes,
    pod_network,
    pools,
    prerequisites,
    proxmox_preflight,
    sealed_files,
    sealing_key,
    storage,
    talos_nodes,
)
from gates.final import FinalSession
from gates.session import Session
from gates.wait import Clock, OnProgress, Outcome, SystemClock, Wait


@dataclass(frozen=True)
class Probe:
    title: str
    open: Callable[[Mapping[str, Any]], Session]


def _final(target: Mapping[str, Any]) -> Session:
    return FinalSession(target, lambda probe, inner: PROBES[probe].open(inner))


PROBES: dict[str, Probe] = {
    "proxmox-preflight": Probe("Proxmox preflight", proxmox_preflight.PreflightSession),
    "talos-api": Probe("Talos API on every node", talos_nodes.ApiSession),
    "talos-configured": Probe("machine configuration on every node", talos_nodes.ConfiguredSession),
    "etcd": Probe("etcd on every control plane", etcd.EtcdSession),
    "kubelets": Probe("kubelet on every node", kubelets.KubeletsSession),
    "kube-api": Probe("Kubernetes API on every control plane", kube_api.ApiSession),
    "vip": Probe("Kubernetes API on the VIP", kube_api.VipSession),
    "nodes-registered": Probe("nodes registered", nodes.registered),
    "prerequisites": Probe("namespaces, secrets and settings", prerequisites.prerequisites),
    "crds": Probe("custom resource definitions", crds.crds),
    "cilium-workloads": Probe("Cilium's workloads", cilium.cilium_workloads),
    "nodes-ready": Probe("nodes ready", nodes.ready),
    "cilium-agents": Probe("Cilium agent on every node", cilium.agents),
    "pod-network": Probe("pod network as configured", pod_network.pod_network),
    "lb-pools": Probe("load-balancer pools", pools.pools),
    "dns": Probe("cluster DNS", dns.dns),
    "cloud-provider": Probe("cloud controller manager", cloud_provider.cloud_provider),
    "sealing-key": Probe("sealing key", sealing_key.sealing_key),
    "sealed-files": Probe("sealed files in Git", sealed_files.SealedFilesSession),
    "flux-operator": Probe("Flux operator", flux.operator),
    "flux-instance": Probe("Flux instance", flux.instance),
    "git-synced": Probe("Git synced", gitops.git_synced),
    "secrets-unsealed": Probe("secrets unsealed", gitops.secrets_unsealed),
    "helm-releases": Probe("Helm releases of Flux", gitops.helm_releases),
    "storage": Probe("storage driver", storage.storage),
    "mesh": Probe("cluster mesh", mesh.mesh),
    "final": Probe("everything once more", _final),
}

Report = Outcome


async def run(
    probe: str, target: Mapping[str, Any], deadline: float, on_progress: OnProgress, clock: Clock | None = None
) -> Report:
    """Wait with one probe; needs no engine."""
    session = PROBES[probe].open(target)
    try:
        wait = Wait(session=session, deadline=deadline, on_progress=on_progress, clock=clock or SystemClock())
        return await wait.run()
    finally:
        await session.close()
