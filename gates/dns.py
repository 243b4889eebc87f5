"""G12a: the cluster's DNS is available and something answers behind its Service."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from pydantic.dataclasses import dataclass

from gates import workloads
from gates.cluster import ClusterSession, ClusterTarget, Lists, name_of
from gates.kubernetes import Object
from gates.session import Session
from gates.target import STRICT, parse
from gates.verdict import Finding, Verdict, conclude
from gates.watch import Kind

DNS_PORT = 53
BROKEN_UPSTREAM = "forwarding DNS to the host together with BPF masquerading breaks it since Cilium 1.16.5"


@dataclass(frozen=True, kw_only=True, config=STRICT)
class DnsTarget(ClusterTarget):
    namespace: str
    deployment: str


def dns(target: Mapping[str, Any]) -> Session:
    parsed = parse(DnsTarget, target)
    space = parsed.namespace
    slices = Kind(path=f"/apis/discovery.k8s.io/v1/namespaces/{space}/endpointslices", name="endpoints")
    kinds = [workloads.deployments(space), workloads.pods(space), slices]
    return ClusterSession(parsed.kubeconfig, kinds, partial(judge, parsed))


def judge(target: DnsTarget, lists: Lists) -> Verdict:
    running = [pod for pod in lists["pods"] if (pod.get("status") or {}).get("phase") == "Running"]
    unready = any(name_of(pod).startswith(f"{target.deployment}-") and not workloads.is_ready(pod) for pod in running)
    cause = BROKEN_UPSTREAM if unready else ""
    down = workloads.deployment(lists, target.kubectl, target.namespace, target.deployment, cause)
    behind = _answering(lists["endpoints"])
    findings = [down] if down else []
    if not behind:
        findings.append(
            Finding(
                observed=f"no ready endpoint for port {DNS_PORT} in {target.namespace}",
                cause="the Service selects no ready DNS pod",
                look=(f"{target.kubectl} -n {target.namespace} get endpointslices,services,pods -o wide",),
            )
        )
    evidence = [f"Deployment {target.namespace}/{target.deployment}: Available", f"DNS behind {', '.join(behind)}"]
    return conclude(findings, evidence)


def _answering(slices: list[Object]) -> list[str]:
    """Addresses that take DNS queries and say they are ready."""
    serving = [each for each in slices if any(port.get("port") == DNS_PORT for port in each.get("ports") or [])]
    ready = [end for each in serving for end in each.get("endpoints") or [] if _is_ready(end)]
    return sorted({address for end in ready for address in end["addresses"]})


def _is_ready(endpoint: Object) -> bool:
    return (endpoint.get("conditions") or {}).get("ready") is True
