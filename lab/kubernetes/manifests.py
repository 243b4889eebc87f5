"""The objects that Talos itself puts into a new cluster: DNS, the node rules and what the machine config inlines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from lab.kubernetes.api import Object
from lab.kubernetes.settings import COREDNS_IMAGE, ClusterSettings

SYSTEM = "kube-system"
CONTROL_PLANE_ROLE = "node-role.kubernetes.io/control-plane"
TOLERATE_EVERYTHING = [{"operator": "Exists"}]


def bootstrap_objects(settings: ClusterSettings) -> list[Object]:
    """In the order in which they can be applied."""
    objects = [*_node_rules()]
    if not settings.component("coreDNS").get("disabled"):
        objects += _dns(settings)
    if not settings.component("proxy").get("disabled"):
        objects.append(_daemon_set("kube-proxy", "kube-proxy", settings.component("proxy").get("image")))
    if settings.cni == "flannel":
        objects.append(_daemon_set("kube-flannel", "flannel", "ghcr.io/siderolabs/flannel:v0.28.0"))
    return objects


def inline_objects(settings: ClusterSettings) -> list[Object]:
    """`inlineManifests`, the kinds that others need first."""
    texts = [manifest["contents"] for manifest in settings.section.get("inlineManifests") or []]
    objects = [document for text in texts for document in yaml.safe_load_all(text) if document]
    return sorted(objects, key=_rank)


def _rank(document: Object) -> int:
    order = ["CustomResourceDefinition", "Namespace", "ServiceAccount", "ClusterRole", "ConfigMap", "Secret"]
    kind = document.get("kind", "")
    return order.index(kind) if kind in order else len(order)


def _node_rules() -> Iterator[Object]:
    """Who may ask for a kubelet certificate, and whose requests are approved."""
    group = {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io"}
    bootstrappers = {**group, "name": "system:bootstrappers:nodes"}
    nodes = {**group, "name": "system:nodes"}
    requests = "system:certificates.k8s.io:certificatesigningrequests"
    yield _binding("system-bootstrap-node-bootstrapper", "system:node-bootstrapper", [bootstrappers, nodes])
    yield _binding("system-bootstrap-approve-node-client-csr", f"{requests}:nodeclient", [bootstrappers])
    yield _binding("system-bootstrap-node-renewal", f"{requests}:selfnodeclient", [nodes])


def _dns(settings: ClusterSettings) -> list[Object]:
    labels = {"k8s-app": "kube-dns", "kubernetes.io/name": "CoreDNS"}
    read = ["list", "watch"]
    rules = [
        {"apiGroups": [""], "resources": ["endpoints", "services", "pods", "namespaces"], "verbs": read},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": read},
    ]
    role: Object = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "system:coredns"},
        "rules": rules,
    }
    account = {"kind": "ServiceAccount", "name": "coredns", "namespace": SYSTEM}
    return [
        _object("v1", "ServiceAccount", "coredns"),
        role,
        _binding("system:coredns", "system:coredns", [account]),
        _object("v1", "ConfigMap", "coredns", data={"Corefile": _corefile(settings.dns_domain)}),
        _object("v1", "Service", "kube-dns", labels=labels, spec=_dns_service(settings.service_address(10))),
        _object("apps/v1", "Deployment", "coredns", labels=labels, spec=_dns_deployment(settings)),
    ]


def _corefile(domain: str) -> str:
    lines = [
        "errors",
        "health {\n        lameduck 5s\n    }",
        "ready",
        "prometheus :9153",
        f"kubernetes {domain} in-addr.arpa ip6.arpa {{\n        pods insecure\n        fallthrough\n    }}",
        "forward . /etc/resolv.conf",
        "cache 30",
        "loop",
        "reload",
        "loadbalance",
    ]
    return ".:53 {\n" + "".join(f"    {line}\n" for line in lines) + "}\n"


def _dns_service(address: str) -> Object:
    ports = [("dns", 53, "UDP"), ("dns-tcp", 53, "TCP"), ("metrics", 9153, "TCP")]
    listed = [{"name": name, "port": port, "protocol": protocol} for name, port, protocol in ports]
    return {"clusterIP": address, "selector": {"k8s-app": "kube-dns"}, "ports": listed}


def _dns_deployment(settings: ClusterSettings) -> Object:
    tolerations = [CONTROL_PLANE_ROLE, "node.cloudprovider.kubernetes.io/uninitialized"]
    container = {
        "name": "coredns",
        "image": settings.component("coreDNS").get("image") or COREDNS_IMAGE,
        "args": ["-conf", "/etc/coredns/Corefile"],
        "resources": {"requests": {"cpu": "100m", "memory": "70Mi"}, "limits": {"memory": "170Mi"}},
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8181}},
        "volumeMounts": [{"name": "config-volume", "mountPath": "/etc/coredns", "readOnly": True}],
    }
    pod = {
        "serviceAccountName": "coredns",
        "priorityClassName": "system-cluster-critical",
        "dnsPolicy": "Default",
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in tolerations],
        "affinity": _apart({"k8s-app": "kube-dns"}),
        "containers": [container],
        "volumes": [{"name": "config-volume", "configMap": {"name": "coredns"}}],
    }
    labels = {"k8s-app": "kube-dns"}
    return {
        "replicas": 2,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }


def _apart(labels: dict[str, str]) -> Object:
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


def _daemon_set(name: str, app: str, image: str | None) -> Object:
    labels = {"k8s-app": app}
    pod = {
        "hostNetwork": True,
        "tolerations": TOLERATE_EVERYTHING,
        "priorityClassName": "system-node-critical",
        "containers": [{"name": name, "image": image or f"registry.k8s.io/{name}:v1.36.0"}],
    }
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
    return _object("apps/v1", "DaemonSet", name, labels=labels, spec=spec)


def _binding(name: str, role: str, subjects: list[dict[str, str]]) -> Object:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": subjects,
    }


def _object(version: str, kind: str, name: str, *, labels: dict[str, str] | None = None, **content: Any) -> Object:
    metadata = {"name": name, "namespace": SYSTEM, **({"labels": labels} if labels else {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **content}
