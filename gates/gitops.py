"""G15, G16 and the last question of G18: what is in Git has become the cluster, and its secrets are open."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from pydantic.dataclasses import dataclass

from gates import workloads
from gates.cluster import ClusterSession, ClusterTarget, Lists, is_true, name_of, namespace_of, reconciled, said
from gates.kubernetes import Object
from gates.session import Session
from gates.target import STRICT, parse
from gates.verdict import Finding, Verdict, conclude
from gates.watch import Kind

REPOSITORIES = Kind(path="/apis/source.toolkit.fluxcd.io/v1/gitrepositories", name="repositories")
KUSTOMIZATIONS = Kind(path="/apis/kustomize.toolkit.fluxcd.io/v1/kustomizations", name="kustomizations")
HELM_RELEASES = Kind(path="/apis/helm.toolkit.fluxcd.io/v2/helmreleases", name="releases")
SEALED = Kind(path="/apis/bitnami.com/v1alpha1/sealedsecrets", name="sealed")
SECRETS = Kind(path="/api/v1/secrets", name="secrets", metadata_only=True)
CAUSES = {
    "authentication": "the Git token in the cluster is wrong, expired or lacks access",
    "authorization": "the Git token in the cluster is wrong, expired or lacks access",
    "unauthorized": "the Git token in the cluster is wrong, expired or lacks access",
    "couldn't find remote ref": "the branch does not exist at the origin",
    "path not found": "the path of the stack file is not in the repository at this revision",
    "no such file": "the path of the stack file is not in the repository at this revision",
    "no key could decrypt": "it was sealed for another key: seal it again for this cluster's certificate and push it",
    "dependency": "it waits for another Kustomization, or one it names does not exist",
    "no such host": "the Git host's name does not resolve inside the cluster",
    "no matches for kind": "an object came before its definition",
}


@dataclass(frozen=True, kw_only=True, config=STRICT)
class GitTarget(ClusterTarget):
    url: str
    branch: str
    path: str


def git_synced(target: Mapping[str, Any]) -> Session:
    parsed = parse(GitTarget, target)
    kinds = [REPOSITORIES, KUSTOMIZATIONS, workloads.deployments(selector="app.kubernetes.io/name=sealed-secrets")]
    return ClusterSession(parsed.kubeconfig, kinds, partial(judge_synced, parsed))


def secrets_unsealed(target: Mapping[str, Any]) -> Session:
    parsed = parse(ClusterTarget, target)
    return ClusterSession(parsed.kubeconfig, [SEALED, SECRETS, KUSTOMIZATIONS], partial(judge_unsealed, parsed))


def helm_releases(target: Mapping[str, Any]) -> Session:
    parsed = parse(ClusterTarget, target)
    return ClusterSession(parsed.kubeconfig, [HELM_RELEASES], partial(judge_releases, parsed))


def judge_synced(target: GitTarget, lists: Lists) -> Verdict:
    source = next((item for item in lists["repositories"] if _is_source(target, item)), None)
    if source is None:
        observed = f"no GitRepository reads {target.url} on {target.branch}"
        look = (f"{target.kubectl} get gitrepositories -A",)
        return conclude([Finding(observed=observed, cause="the FluxInstance has no such sync", look=look)], [])
    root = next((item for item in lists["kustomizations"] if _path(item) == target.path.strip("./")), None)
    found = [_object(target, "GitRepository", source), _root(target, root, source), _controller(target, lists)]
    evidence = [f"GitRepository at {_revision(source)}", f"Kustomization {target.path}: applied"]
    return conclude([each for each in found if each], evidence)


def judge_unsealed(target: ClusterTarget, lists: Lists) -> Verdict:
    secrets = {(namespace_of(item), name_of(item)) for item in lists["secrets"]}
    findings = [found for item in lists["sealed"] if (found := _sealed(target, item, secrets))]
    if not lists["sealed"]:
        findings.append(Finding(observed="no SealedSecret in the cluster yet", cause="Flux has not applied them"))
    findings += [found for item in lists["kustomizations"] if (found := _kustomization(target, item, lists))]
    evidence = [f"SealedSecret {namespace_of(item)}/{name_of(item)}: open" for item in lists["sealed"]]
    evidence += [f"Kustomization {name_of(item)}: Ready" for item in lists["kustomizations"]]
    total = len(lists["sealed"]) + len(lists["kustomizations"])
    return conclude(findings, evidence, done=max(0, total - len(findings)), total=total)


def judge_releases(target: ClusterTarget, lists: Lists) -> Verdict:
    items = lists["releases"]
    findings = [found for item in items if (found := _object(target, "HelmRelease", item))]
    evidence = [f"HelmRelease {namespace_of(item)}/{name_of(item)}: Ready" for item in items]
    return conclude(findings, evidence, done=len(items) - len(findings), total=len(items))


def _is_source(target: GitTarget, item: Object) -> bool:
    ref = item["spec"].get("ref") or {}
    named = ref.get("branch") == target.branch or ref.get("name") == f"refs/heads/{target.branch}"
    return item["spec"]["url"].removesuffix(".git") == target.url.removesuffix(".git") and named


def _path(item: Object) -> str:
    return str(item["spec"].get("path", "")).strip("./")


def _revision(item: Object) -> str:
    return str(((item.get("status") or {}).get("artifact") or {}).get("revision", ""))


def _object(target: ClusterTarget, kind: str, item: Object) -> Finding | None:
    """The failing object's own condition is the best diagnosis there is."""
    if reconciled(item) or item["spec"].get("suspend"):
        return None
    return _told(target, kind, item, said(item, "Stalled" if is_true(item, "Stalled") else "Ready"))


def _told(target: ClusterTarget, kind: str, item: Object, told: str) -> Finding:
    space, name = namespace_of(item), name_of(item)
    cause = next((cause for words, cause in CAUSES.items() if words in told.lower()), "")
    return Finding(
        observed=f"{kind} {space}/{name}: {told}",
        cause=cause,
        look=(f"{target.kubectl} -n {space} describe {kind.lower()} {name}",),
    )


def _root(target: GitTarget, item: Object | None, source: Object) -> Finding | None:
    if item is None:
        look = (f"{target.kubectl} get kustomizations -A",)
        return Finding(observed=f"no Kustomization for {target.path}", cause="the FluxInstance's sync", look=look)
    applied = (item.get("status") or {}).get("lastAppliedRevision", "")
    if reconciled(item) and applied != _revision(source):
        return _told(target, "Kustomization", item, f"applied {applied or 'nothing'}, Git is at {_revision(source)}")
    return _object(target, "Kustomization", item)


def _controller(target: GitTarget, lists: Lists) -> Finding | None:
    if any(workloads.available(item) for item in lists["deployments"]):
        return None
    name = next((f"{namespace_of(item)}/{name_of(item)}" for item in lists["deployments"]), "")
    observed = f"Deployment {name} is not Available" if name else "no sealed-secrets controller"
    cause = "Flux has not installed it, or it does not start"
    return Finding(observed=observed, cause=cause, look=(f"{target.kubectl} get helmreleases,deployments -A",))


def _sealed(target: ClusterTarget, item: Object, secrets: set[tuple[str, str]]) -> Finding | None:
    if not is_true(item, "Synced"):
        return _told(target, "SealedSecret", item, said(item, "Synced"))
    if (namespace_of(item), name_of(item)) not in secrets:
        return _told(target, "SealedSecret", item, "says Synced, but its Secret does not exist")
    return None


def _kustomization(target: ClusterTarget, item: Object, lists: Lists) -> Finding | None:
    known = {(namespace_of(each), name_of(each)) for each in lists["kustomizations"]}
    needs = [
        (each.get("namespace") or namespace_of(item), each["name"]) for each in item["spec"].get("dependsOn") or []
    ]
    dangling = [f"{space}/{name}" for space, name in needs if (space, name) not in known]
    if dangling:
        told = f"its dependency {', '.join(dangling)} does not exist (dependsOn without a namespace looks in its own)"
        return _told(target, "Kustomization", item, told)
    return _object(target, "Kustomization", item)
