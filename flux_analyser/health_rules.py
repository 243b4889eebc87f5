"""Rules about how a step knows that it is done, and habits that keep a tree healthy."""

from __future__ import annotations

from collections.abc import Iterator

from flux_analyser.cluster import Cluster
from flux_analyser.finding import Finding
from flux_analyser.step import Document, Step, key_of, name_of

WORKLOADS = {"Deployment", "DaemonSet", "StatefulSet", "Job"}
FLUX_KINDS = {"HelmRelease", "Kustomization", "HelmRepository", "OCIRepository", "GitRepository", "Bucket"}
FIELDS = {"retryInterval": "30s", "timeout": "5m"}


def one_judgement(cluster: Cluster) -> Iterator[Finding]:
    """Flux ignores health checks beside wait."""
    for step in cluster.steps.values():
        if step.waits and step.spec.get("healthChecks"):
            message = "has wait and health checks; the checks are ignored"
            yield Finding(level="failure", rule="health", where=step.key, message=message, fix="keep one of the two")


def checks_exist(cluster: Cluster) -> Iterator[Finding]:
    for step in cluster.steps.values():
        for check in step.spec.get("healthChecks") or []:
            if not _exists(check, step):
                yield _missing(check, step)


def _exists(check: Document, step: Step) -> bool:
    return any(
        item["kind"] == check["kind"]
        and name_of(item) == check["name"]
        and str((item.get("metadata") or {}).get("namespace", "")) == str(check.get("namespace", ""))
        for item in step.objects
    )


def _missing(check: Document, step: Step) -> Finding:
    what = f"{check['kind']} {check.get('namespace', '')}/{check['name']}"
    if _may_be_rendered(check, step):
        message = f"checks {what}, which only its rendered charts can show"
        return Finding(level="warning", rule="health", where=step.key, message=message)
    message = f"checks {what}, which is not among the objects it applies"
    return Finding(level="failure", rule="health", where=step.key, message=message, fix="check the rendered name")


def _may_be_rendered(check: Document, step: Step) -> bool:
    """By a chart of the step: workloads bear the release's name in front, other kinds any name."""
    if check["kind"] in FLUX_KINDS or not step.releases:
        return False
    prefixes = {prefix for release in step.releases for prefix in _prefixes(release)}
    return check["kind"] not in WORKLOADS or check["name"].startswith(tuple(prefixes))


def _prefixes(release: Document) -> list[str]:
    spec = release.get("spec") or {}
    values = spec.get("values") or {}
    overrides = [values.get("fullnameOverride"), values.get("nameOverride"), spec.get("releaseName")]
    return [name_of(release), *(str(name) for name in overrides if name)]


def depended_on_means_judged(cluster: Cluster) -> Iterator[Finding]:
    needed = {key for step in cluster.steps.values() for key in step.needs}
    for step in cluster.steps.values():
        if step.key in needed and not step.waits and not step.spec.get("healthChecks"):
            message = "others depend on it, and it is Ready as soon as it is applied"
            yield Finding(level="warning", rule="health", where=step.key, message=message, fix="wait: true")


def retries(cluster: Cluster) -> Iterator[Finding]:
    """Without these Flux takes the interval, which is long."""
    for field, usual in FIELDS.items():
        without = sorted(step.key for step in cluster.steps.values() if field not in step.spec)
        if without:
            message = f"{len(without)} of {len(cluster.steps)} steps have no {field} ({', '.join(without[:3])} …)"
            yield Finding(level="warning", rule="retry", where=cluster.name, message=message, fix=f"{field}: {usual}")


def plain_secrets(cluster: Cluster) -> Iterator[Finding]:
    for step, item in cluster.objects():
        if item["kind"] == "Secret" and "sops" not in item and (item.get("data") or item.get("stringData")):
            message = f"Secret {key_of(item)} is in Git as plain text"
            yield Finding(level="failure", rule="secret", where=step.key, message=message, fix="seal or encrypt it")
