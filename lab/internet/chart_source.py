"""Which chart the lab can serve, where clients look for it, and which module holds it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lab.internet.chart import Chart, pack_chart
from lab.internet.modules import Workshop


@dataclass(frozen=True, kw_only=True)
class ChartSource:
    """A chart version has a module version of its own: v<version> unless the table says another."""

    name: str
    home: str
    """Host and path below which clients ask for it."""
    module: str
    directory: str
    versions: dict[str, str]
    """Module version by chart version."""
    remark: str | None = None

    async def chart(self, workshop: Workshop, version: str) -> Chart:
        module_version = self.versions.get(version)
        if module_version is None:
            raise LookupError(f"the lab has no chart {self.name} {version}, only {', '.join(self.versions)}")

        def recipe(module: Path) -> Chart:
            return pack_chart(module / self.directory, version, self.remark)

        return await workshop.make(self.module, module_version, recipe, key=(self.name, version))


CILIUM = "helm.cilium.io"
SEALED_SECRETS = "bitnami-labs.github.io/sealed-secrets"
METRICS_SERVER = "kubernetes-sigs.github.io/metrics-server"
PROXMOX_CSI = "ghcr.io/sergelogvinov/charts/proxmox-csi-plugin"

SEALED_SECRETS_MODULES = {"2.18.4": "v0.36.6"}
METRICS_SERVER_MODULES = {"3.13.1": "v0.9.0"}
PROXMOX_CSI_MODULES = {"0.5.6": "v0.18.1"}


def chart_sources(versions: dict[str, str]) -> list[ChartSource]:
    """All charts of the lab; Cilium's chart carries the version of its release, which the stack names."""
    cilium = versions.get("cilium")
    return [
        ChartSource(
            name="cilium",
            home=CILIUM,
            module="github.com/cilium/cilium",
            directory="install/kubernetes/cilium",
            versions={cilium: f"v{cilium}"} if cilium else {},
            remark="its values name Cilium's own images by tag, where the released chart adds their digests",
        ),
        ChartSource(
            name="sealed-secrets",
            home=SEALED_SECRETS,
            module="github.com/bitnami-labs/sealed-secrets",
            directory="helm/sealed-secrets",
            versions=SEALED_SECRETS_MODULES,
        ),
        ChartSource(
            name="metrics-server",
            home=METRICS_SERVER,
            module="sigs.k8s.io/metrics-server",
            directory="charts/metrics-server",
            versions=METRICS_SERVER_MODULES,
        ),
        ChartSource(
            name="proxmox-csi-plugin",
            home=PROXMOX_CSI,
            module="github.com/sergelogvinov/proxmox-csi-plugin",
            directory="charts/proxmox-csi-plugin",
            versions=PROXMOX_CSI_MODULES,
        ),
    ]
