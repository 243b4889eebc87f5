"""The Proxmox API as a storage driver's pod reaches it: with the token in the Secret it mounts, and nothing else."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import yaml

from lab.kubernetes.pod_scene import PodScene

TIMEOUT = 10.0


class ProvisioningError(Exception):
    """What the driver would write into the claim's events."""


class ProxmoxAccess:
    def __init__(self, scene: PodScene) -> None:
        self._scene = scene

    async def request(
        self, region: str, method: str, path: str, body: dict[str, str] | None = None, *, fine: str | None = None
    ) -> Any:
        """The answer's data; an error that says `fine` is none."""
        cluster = self._cluster(region)
        headers = {"Authorization": f"PVEAPIToken={cluster['token_id']}={cluster['token_secret']}"}
        verify = trusting(self._scene.around.trust, insecure=bool(cluster.get("insecure")))
        url = f"{cluster['url'].rstrip('/')}/{path}"
        try:
            async with httpx.AsyncClient(verify=verify, trust_env=False, timeout=TIMEOUT) as client:
                response = await client.request(method, url, data=body, headers=headers)
        except httpx.TransportError as error:
            raise ProvisioningError(f"no answer from Proxmox in region {region}: {error}") from None
        if not response.is_error:
            return response.json()["data"]
        if fine is None or fine not in response.text + response.reason_phrase:
            raise ProvisioningError(f"Proxmox in region {region}: {response.status_code} {response.reason_phrase}")
        return None

    def _cluster(self, region: str) -> Mapping[str, Any]:
        for cluster in clusters(self._scene):
            if cluster.get("region") == region:
                return cluster
        raise ProvisioningError(f"proxmox cluster {region} not found")


def clusters(scene: PodScene) -> list[Mapping[str, Any]]:
    """What the Secret mounted into the controller says about Proxmox."""
    for volume in scene.pod["spec"].get("volumes") or []:
        data = scene.inputs.data("Secret", (volume.get("secret") or {}).get("secretName") or "")
        if "config.yaml" in data:
            return list(yaml.safe_load(data["config.yaml"]).get("clusters") or [])
    return []


def trusting(bundle: Path | None, *, insecure: bool) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(bundle) if bundle else None)
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
