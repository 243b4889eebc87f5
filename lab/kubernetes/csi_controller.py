"""The Proxmox CSI controller: an emulated provisioner that really talks to Proxmox, with the token it was given."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import yaml

from lab.kubernetes.api import Api, ApiError, Object, account_actor
from lab.kubernetes.machine import PROXMOX_DRIVER, REGION, ZONE
from lab.kubernetes.pod_scene import LATER, Decision, PodScene

PROVISIONER = "volume.kubernetes.io/storage-provisioner"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
OWNER = 9999
"""The VM id under which the driver keeps volumes that are attached to none."""
UNITS = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
TIMEOUT = 10.0


class ProvisioningError(Exception):
    """What the driver would write into the claim's events."""


class CsiControllerPod:
    def __init__(self, scene: PodScene) -> None:
        self._scene = scene
        account = scene.pod["spec"].get("serviceAccountName") or "default"
        self._actor = account_actor(scene.namespace, account)

    async def decide(self) -> Decision:
        if self._scene.struck_by("csi-controller-crash"):
            return self._scene.crash("fault csi-controller-crash: the controller was stopped")
        for claim in await self._listed("persistentvolumeclaims"):
            if waits_for_us(claim):
                await self._provision(claim)
        for volume in await self._listed("persistentvolumes"):
            if released(volume):
                await self._remove(volume)
        return self._scene.runs(again=LATER)

    async def stop(self) -> None:
        """Nothing of it runs outside of `decide`."""

    @property
    def _api(self) -> Api:
        return self._scene.around.api

    async def _listed(self, plural: str) -> list[Object]:
        """What the controller's own rights let it see."""
        try:
            listed = await self._api.get(f"/api/v1/{plural}", actor=self._actor)
        except ApiError:
            return []
        return list(listed["items"])

    async def _provision(self, claim: Object) -> None:
        try:
            storage_class = await self._class(claim)
            region, zone = await self._place(claim)
            handle = await self._allocate(claim, storage_class["parameters"], region, zone)
            volume = persistent_volume(claim, storage_class, handle, region, zone)
            await self._api.create("/api/v1/persistentvolumes", volume, actor=self._actor)
        except ProvisioningError as error:
            await self._scene.around.event(self._scene.pod, "ProvisioningFailed", str(error), about=claim)
        except ApiError as error:
            if error.status != 409:
                await self._scene.around.event(self._scene.pod, "ProvisioningFailed", str(error), about=claim)

    async def _class(self, claim: Object) -> Object:
        path = f"/apis/storage.k8s.io/v1/storageclasses/{claim['spec']['storageClassName']}"
        return await self._api.get(path, actor=self._actor)

    async def _place(self, claim: Object) -> tuple[str, str]:
        """Region and zone of the node the scheduler has chosen, or of the controller's own."""
        chosen = claim["metadata"]["annotations"].get(SELECTED_NODE) or self._scene.machine.node.name
        node = await self._api.get(f"/api/v1/nodes/{chosen}", actor=self._actor)
        labels = node["metadata"].get("labels") or {}
        if not labels.get(REGION) or not labels.get(ZONE):
            raise ProvisioningError(f"cannot find best region: node {chosen} has no region and zone")
        return labels[REGION], labels[ZONE]

    async def _allocate(self, claim: Object, parameters: Mapping[str, str], region: str, zone: str) -> str:
        storage, name = parameters["storage"], f"vm-{OWNER}-pvc-{claim['metadata']['uid']}"
        size = kibibytes(claim["spec"]["resources"]["requests"]["storage"])
        body = {"filename": name, "vmid": str(OWNER), "size": f"{size}K", "format": "raw"}
        await self._proxmox(region, "POST", f"nodes/{zone}/storage/{storage}/content", body, fine="already exists")
        return f"{region}/{zone}/{storage}/{name}"

    async def _remove(self, volume: Object) -> None:
        region, zone, storage, name = volume["spec"]["csi"]["volumeHandle"].split("/")
        path = f"nodes/{zone}/storage/{storage}/content/{storage}:{name}"
        try:
            await self._proxmox(region, "DELETE", path, None, fine="does not exist")
            await self._api.delete(f"/api/v1/persistentvolumes/{volume['metadata']['name']}", actor=self._actor)
        except (ProvisioningError, ApiError) as error:
            where = volume["metadata"]["name"]
            self._scene.around.log.record("csi", "DELETE", where, "failed", why=str(error)[:300])

    async def _proxmox(self, region: str, method: str, path: str, body: dict[str, str] | None, *, fine: str) -> None:
        """One request with the unsealed token; an answer that says `fine` is no failure."""
        cluster = self._cluster(region)
        headers = {"Authorization": f"PVEAPIToken={cluster['token_id']}={cluster['token_secret']}"}
        verify = trusting(self._scene.around.trust, insecure=bool(cluster.get("insecure")))
        url = f"{cluster['url'].rstrip('/')}/{path}"
        try:
            async with httpx.AsyncClient(verify=verify, trust_env=False, timeout=TIMEOUT) as client:
                response = await client.request(method, url, data=body, headers=headers)
        except httpx.TransportError as error:
            raise ProvisioningError(f"no answer from Proxmox in region {region}: {error}") from None
        if response.is_error and fine not in response.text + response.reason_phrase:
            raise ProvisioningError(f"Proxmox in region {region}: {response.status_code} {response.reason_phrase}")

    def _cluster(self, region: str) -> Mapping[str, Any]:
        for cluster in clusters(self._scene):
            if cluster.get("region") == region:
                return cluster
        raise ProvisioningError(f"proxmox cluster {region} not found")


def waits_for_us(claim: Object) -> bool:
    annotations = claim["metadata"].get("annotations") or {}
    pending = claim.get("status", {}).get("phase") == "Pending" and not claim["spec"].get("volumeName")
    return bool(pending and annotations.get(PROVISIONER) == PROXMOX_DRIVER)


def released(volume: Object) -> bool:
    spec, phase = volume["spec"], volume.get("status", {}).get("phase")
    ours = (spec.get("csi") or {}).get("driver") == PROXMOX_DRIVER
    return ours and phase == "Released" and spec.get("persistentVolumeReclaimPolicy") == "Delete"


def clusters(scene: PodScene) -> list[Mapping[str, Any]]:
    """What the Secret mounted into the controller says about Proxmox."""
    for volume in scene.pod["spec"].get("volumes") or []:
        data = scene.inputs.data("Secret", (volume.get("secret") or {}).get("secretName") or "")
        if "config.yaml" in data:
            return list(yaml.safe_load(data["config.yaml"]).get("clusters") or [])
    return []


def kibibytes(quantity: str) -> int:
    for suffix, factor in UNITS.items():
        if quantity.endswith(suffix):
            return max(1, int(float(quantity.removesuffix(suffix)) * factor) // 1024)
    return max(1, int(quantity) // 1024)


def trusting(bundle: Path | None, *, insecure: bool) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(bundle) if bundle else None)
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def persistent_volume(claim: Object, storage_class: Object, handle: str, region: str, zone: str) -> Object:
    metadata = claim["metadata"]
    terms = [{"key": REGION, "operator": "In", "values": [region]}, {"key": ZONE, "operator": "In", "values": [zone]}]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": f"pvc-{metadata['uid']}",
            "annotations": {"pv.kubernetes.io/provisioned-by": PROXMOX_DRIVER},
        },
        "spec": {
            "capacity": claim["spec"]["resources"]["requests"],
            "accessModes": claim["spec"]["accessModes"],
            "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
            "storageClassName": storage_class["metadata"]["name"],
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": metadata["namespace"],
                "name": metadata["name"],
                "uid": metadata["uid"],
            },
            "csi": {"driver": PROXMOX_DRIVER, "volumeHandle": handle, "fsType": "ext4"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": terms}]}},
        },
    }
