"""What is installed, sealed and handed over to Flux."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from .values import LABEL_NAME, RELATIVE_PATH, ChartVersion, Section, Word

NamespaceName = Annotated[str, Field(pattern=LABEL_NAME)]
RepositoryPath = Annotated[str, Field(pattern=RELATIVE_PATH)]
PodSecurity = Literal["privileged", "baseline", "restricted"]


class Namespace(Section):
    """A namespace that has to exist before the charts and Flux."""

    pod_security: PodSecurity = "baseline"
    pull_secret: bool = False
    """Put the secret pullSecret there."""


class CrdSet(Section):
    url: Annotated[str, Field(pattern=r"^https://\S+$")]
    names: list[str] = Field(default_factory=list)
    """CRDs the gate waits for; every one in the file unless said otherwise."""


class ChartSpec(Section):
    """A chart installed before Flux."""

    name: NamespaceName
    chart: Word
    repository: Annotated[str, Field(pattern=r"^https://\S+$")] | None = None
    """Chart repository; none when `chart` is an oci:// address."""
    version: ChartVersion
    namespace: NamespaceName
    values: dict[str, Any] = Field(default_factory=dict)
    needs: list[str] = Field(default_factory=list)
    """Names of charts that must be there first."""
    gate: Literal["G12a", "G11b"] | None = None
    """Gate that proves it: G12a for cluster DNS, G11b for the cloud controller."""


class Csi(Section):
    storage_class: Word
    storage: Word
    """Proxmox storage the volumes are made on."""
    namespace: NamespaceName = "csi-proxmox"


class Storage(Section):
    role: Literal["provider", "consumer", "none"]
    csi: Csi | None = None
    provider_stack: str | None = None
    """The stack whose in-cluster storage this cluster consumes."""
    components: list[str] = Field(default_factory=list)
    """In-cluster storage, such as rook-ceph-operator; only a provider may have it."""


class Sealing(Section):
    directory: RepositoryPath
    """Where sealed manifests are written, from the root of the repository."""
    publish: Literal["none", "commit", "push"] = "none"
    namespace: NamespaceName = "kube-system"
    key_name: NamespaceName = "sealed-secrets-key"


class Flux(Section):
    url: Annotated[str, Field(pattern=r"^https://[^\s@]+$")]
    branch: Annotated[str, Field(pattern=r"^[^\s:~^?*\[]+$")] = "main"
    path: RepositoryPath
    namespace: NamespaceName = "flux-system"
    interval: Annotated[str, Field(pattern=r"^(\d+h)?(\d+m)?(\d+s)?$", min_length=2)] = "1h"
