"""Every probe by the name its gate calls it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gates import etcd, kube_api, kubelets, nodes, talos_nodes
from gates.session import Session
from gates.wait import Clock, OnProgress, Outcome, SystemClock, Wait


@dataclass(frozen=True, kw_only=True)
class Probe:
    title: str
    open: Callable[[Mapping[str, Any]], Session]


PROBES: dict[str, Probe] = {
    "talos-api": Probe(title="Talos API on every node", open=talos_nodes.ApiSession),
    "talos-configured": Probe(title="machine configuration on every node", open=talos_nodes.ConfiguredSession),
    "etcd": Probe(title="etcd on every control plane", open=etcd.EtcdSession),
    "kubelets": Probe(title="kubelet on every node", open=kubelets.KubeletsSession),
    "kube-api": Probe(title="Kubernetes API on every control plane", open=kube_api.ApiSession),
    "vip": Probe(title="Kubernetes API on the VIP", open=kube_api.VipSession),
    "nodes-registered": Probe(title="nodes registered", open=nodes.registered),
    "nodes-ready": Probe(title="nodes ready", open=nodes.ready),
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
