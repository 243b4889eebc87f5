"""The parts of a platform that others stand on, recognised by their charts and kinds."""

from __future__ import annotations

from collections.abc import Iterable

from flux_analyser.step import Document, Step, chart_of, group_of, name_of

CHARTS = {
    "cilium": ("cilium",),
    "coredns": ("coredns",),
    "ccm": ("proxmox-cloud-controller-manager", "talos-cloud-controller-manager"),
    "spegel": ("spegel",),
    "cert-manager": ("cert-manager",),
    "csi": ("proxmox-csi-plugin", "proxmox-csi", "democratic-csi", "csi-driver-nfs", "synology-csi"),
    "metrics": ("metrics-server",),
    "sealed-secrets": ("sealed-secrets",),
    "storage operator": (
        "rook-ceph",
        "rook-ceph-cluster",
        "longhorn",
        "openebs",
        "piraeus-operator",
        "linstor-cluster",
    ),
}
STORAGE = ("csi", "storage operator")
CRITICAL = (
    *(("cilium", name) for name in ("coredns", "ccm", "spegel")),
    *(("coredns", name) for name in ("cert-manager", "csi", "metrics")),
    ("sealed-secrets", "storage"),
    ("ccm", "csi"),
    ("cert-manager", "gateway"),
)
OWNERS = {
    "bitnami.com": "sealed-secrets",
    "cert-manager.io": "cert-manager",
    "cilium.io": "cilium",
    "ceph.rook.io": "storage operator",
    "longhorn.io": "storage operator",
}
"""Who registers the custom resources of a group, where no CRD manifest says so."""


def roles_of(step: Step) -> set[str]:
    return set(_roles(step.objects))


def release_roles(release: Document) -> set[str]:
    names = {chart_of(release)[0], name_of(release)}
    return {role for role, charts in CHARTS.items() if names & set(charts)}


def _roles(objects: Iterable[Document]) -> Iterable[str]:
    for item in objects:
        if item["kind"] == "HelmRelease":
            found = release_roles(item)
            yield from found
            if found & set(STORAGE):
                yield "storage"
        elif item["kind"] == "Gateway" and group_of(item) == "gateway.networking.k8s.io":
            yield "gateway"
