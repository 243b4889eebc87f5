"""G12: the sealing key is in the cluster, marked active, and is the one this stack seals with."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from functools import partial
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from pydantic.dataclasses import dataclass

from gates.cluster import ClusterSession, ClusterTarget, Lists
from gates.kubernetes import Object
from gates.session import Session
from gates.target import STRICT, parse
from gates.verdict import Finding, Verdict, conclude
from gates.watch import Kind

LABEL = "sealedsecrets.bitnami.com/sealed-secrets-key"


@dataclass(frozen=True, kw_only=True, config=STRICT)
class SealingKeyTarget(ClusterTarget):
    namespace: str
    name: str
    fingerprint: str


def sealing_key(target: Mapping[str, Any]) -> Session:
    parsed = parse(SealingKeyTarget, target)
    path = f"/api/v1/namespaces/{parsed.namespace}/secrets"
    kind = Kind(path=path, name="keys", fields=f"metadata.name={parsed.name}")
    return ClusterSession(parsed.kubeconfig, [kind], partial(judge, parsed))


def judge(target: SealingKeyTarget, lists: Lists) -> Verdict:
    findings = _missing(target) if not lists["keys"] else _key(target, lists["keys"][0])
    return conclude(findings, [f"{target.namespace}/{target.name}: active, SHA-256 {target.fingerprint}"])


def _missing(target: SealingKeyTarget) -> list[Finding]:
    look = (f"{target.kubectl} -n {target.namespace} get secrets -l {LABEL}",)
    return [Finding(observed=f"no Secret {target.namespace}/{target.name}", cause="it was deleted", look=look)]


def _key(target: SealingKeyTarget, item: Object) -> list[Finding]:
    name = f"Secret {target.namespace}/{target.name}"
    show = f"{target.kubectl} -n {target.namespace} get secret {target.name} --show-labels"
    findings = []
    if (item["metadata"].get("labels") or {}).get(LABEL) != "active":
        mend = f"{target.kubectl} -n {target.namespace} label --overwrite secret {target.name} {LABEL}=active"
        cause = "a controller would not take this key and make one of its own"
        findings.append(Finding(observed=f"{name} is not labelled active", cause=cause, look=(show, mend)))
    found = _fingerprint(item)
    if found != target.fingerprint:
        cause = "somebody replaced the key: what this stack seals could not be opened"
        observed = f"{name} holds the certificate {found or '(none)'}, this stack seals for {target.fingerprint}"
        findings.append(Finding(observed=observed, cause=cause, look=(show,)))
    return findings


def _fingerprint(item: Object) -> str:
    """SHA-256 of its certificate in hexadecimal; empty where there is none to be read."""
    try:
        pem = base64.b64decode((item.get("data") or {})["tls.crt"])
        return x509.load_pem_x509_certificate(pem).fingerprint(hashes.SHA256()).hex()
    except (KeyError, ValueError, binascii.Error):
        return ""
