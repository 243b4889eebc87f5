"""G5 and G6: the Kubernetes API answers on every control plane's own address, and on the shared one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import field
from typing import Any

import httpx
from pydantic.dataclasses import dataclass

from gates.kubernetes import Kubeconfig, Kubernetes, MissingError
from gates.session import Session, pause_for
from gates.target import STRICT, NodeRef, parse
from gates.trouble import TroubleError
from gates.verdict import Finding, Verdict, conclude

READY = "/readyz"
DEFAULT_ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"
ACCESS_REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
MAY_CREATE_PODS = {
    "apiVersion": "authorization.k8s.io/v1",
    "kind": "SelfSubjectAccessReview",
    "spec": {"resourceAttributes": {"namespace": "default", "verb": "create", "resource": "pods"}},
}


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ApiTarget:
    nodes: list[NodeRef]
    kubeconfig: str = field(repr=False)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class VipTarget:
    vip: str
    kubeconfig: str = field(repr=False)


class ApiSession(Session):
    """Asks each control plane by its own address."""

    def __init__(self, target: Mapping[str, Any]) -> None:
        parsed = parse(ApiTarget, target)
        self._servers = [(node, Kubernetes(parsed.kubeconfig, address=node.address)) for node in parsed.nodes]
        self.longest_pause = pause_for(len(self._servers))

    async def look(self) -> Verdict:
        answers = await asyncio.gather(*(self._ask(node, api) for node, api in self._servers))
        troubles = [(node, trouble) for node, trouble in answers if trouble]
        findings = [_finding(node, trouble) for node, trouble in troubles if not trouble.hopeless]
        fatal = [_finding(node, trouble) for node, trouble in troubles if trouble.hopeless]
        evidence = [f"{node.name}: {api.server}{READY} ok, may create pods" for node, api in self._servers]
        done, total = len(answers) - len(troubles), len(answers)
        return conclude(findings, evidence, done=done, total=total, fatal=fatal)

    async def close(self) -> None:
        await asyncio.gather(*(api.close() for _, api in self._servers))

    async def _ask(self, node: NodeRef, api: Kubernetes) -> tuple[NodeRef, TroubleError | None]:
        try:
            await api.text(READY, verbose="")
            await _usable(api)
        except TroubleError as trouble:
            return node, trouble
        return node, None


async def _usable(api: Kubernetes) -> None:
    """A ready API that cannot yet take pods is no ground to build on."""
    try:
        await api.get(DEFAULT_ACCOUNT)
    except MissingError:
        raise TroubleError(
            f"{api.server}: the service account default/default does not exist",
            "kube-controller-manager is not at work",
        ) from None
    review = await api.post(ACCESS_REVIEW, MAY_CREATE_PODS)
    if not review["status"].get("allowed"):
        raise TroubleError(f"{api.server}: these credentials may not create pods", "not the cluster's admin kubeconfig")


def _finding(node: NodeRef, trouble: TroubleError) -> Finding:
    talosctl = f"talosctl -n {node.address} -e {node.address}"
    return Finding(
        node=node,
        observed=failing_checks(trouble.observed),
        cause=trouble.cause or "the API server's static pod is not up on this control plane",
        look=(
            f"{talosctl} get staticpodstatus",
            f"{talosctl} containers -k",
            f"curl -k https://{node.address}:6443/readyz",
        ),
    )


def failing_checks(observed: str) -> str:
    """A verbose /readyz lists everything; only what fails is news."""
    failing = [line for line in observed.splitlines() if line.startswith("[-]")]
    head = observed.splitlines()[0].split("[+]")[0].split("[-]")[0].rstrip()
    return "\n".join([head, *failing])


class VipSession(Session):
    """Asks the shared address, which a control plane takes once etcd runs."""

    longest_pause = pause_for(1)

    def __init__(self, target: Mapping[str, Any]) -> None:
        parsed = parse(VipTarget, target)
        self._vip = parsed.vip
        self._control_plane = httpx.URL(Kubeconfig.parse(parsed.kubeconfig).server).host
        self._api = Kubernetes(parsed.kubeconfig, address=parsed.vip)

    async def look(self) -> Verdict:
        try:
            await self._api.text(READY, verbose="")
        except TroubleError as trouble:
            found = self._finding(trouble)
            return conclude([], [], fatal=[found]) if trouble.hopeless else conclude([found], [])
        return conclude([], [f"{self._api.server}{READY} ok"])

    async def close(self) -> None:
        await self._api.close()

    def _finding(self, trouble: TroubleError) -> Finding:
        talosctl = f"talosctl -n {self._control_plane} -e {self._control_plane}"
        nobody = "no control plane holds the address: etcd without quorum, or a Layer2VIPConfig with the wrong link"
        return Finding(
            observed=f"VIP {failing_checks(trouble.observed)}",
            cause=trouble.cause if trouble.hopeless else nobody,
            look=(f"{talosctl} get operatorspecs", f"{talosctl} get addresses | grep {self._vip}"),
        )
