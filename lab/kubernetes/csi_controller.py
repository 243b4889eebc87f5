"""The Proxmox CSI controller: an emulated provisioner that really talks to Proxmox, with the token it was given."""

from __future__ import annotations

from collections.abc import Mapping

from lab.kubernetes.api import Api, ApiError, Object, account_actor
from lab.kubernetes.machine import PROXMOX_DRIVER, REGION, ZONE
from lab.kubernetes.pod_scene import LATER, Decision, PodScene
from lab.kubernetes.proxmox_access import ProvisioningError, ProxmoxAccess

PROVISIONER = "volume.kubernetes.io/storage-provisioner"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
OWNER = 9999
"""The VM id under which the driver keeps volumes that are attached to none."""
UNITS = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


class CsiControllerPod:
    def __init__(self, scene: PodScene) -> None:
        self._scene = scene
        account = scene.pod["spec"].get("serviceAccountName") or "default"
        self._actor = account_actor(scene.namespace, account)
        self._proxmox = ProxmoxAccess(scene)
        self._published: set[tuple[str, str, str]] = set()
        """Storage class, region and zone of every capacity the scheduler has been told."""

    async def decide(self) -> Decision:
        if self._scene.struck_by("csi-controller-crash"):
            return self._scene.crash("fault csi-controller-crash: the controller was stopped")
        await self._publish()
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

    async def _listed(self, plural: str, group: str = "/api/v1") -> list[Object]:
        """What the controller's own rights let it see."""
        try:
            listed = await self._api.get(f"{group}/{plural}", actor=self._actor)
        except ApiError:
            return []
        return list(listed["items"])

    async def _publish(self) -> None:
        """Where there is how much room: without it the scheduler places no pod that waits for a volume."""
        storage = await self._listed("storageclasses", "/apis/storage.k8s.io/v1")
        places = {place for node in await self._listed("nodes") if (place := place_of(node))}
        ours = [item for item in storage if item.get("provisioner") == PROXMOX_DRIVER]
        for item in ours:
            for region, zone in places:
                key = (item["metadata"]["name"], region, zone)
                if key not in self._published and await self._publish_one(item, region, zone):
                    self._published.add(key)

    async def _publish_one(self, storage_class: Object, region: str, zone: str) -> bool:
        path = f"nodes/{zone}/storage/{storage_class['parameters']['storage']}/status"
        namespace = self._scene.namespace
        try:
            status = await self._proxmox.request(region, "GET", path)
            body = capacity(storage_class["metadata"]["name"], region, zone, int(status["avail"]))
            place = f"/apis/storage.k8s.io/v1/namespaces/{namespace}/csistoragecapacities"
            await self._api.create(place, body, actor=self._actor)
        except ProvisioningError as error:
            self._scene.around.log.record("csi", "GET", path, "failed", why=str(error)[:300])
            return False
        except ApiError as error:
            return error.status == 409
        return True

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
        place = place_of(node)
        if place is None:
            raise ProvisioningError(f"cannot find best region: node {chosen} has no region and zone")
        return place

    async def _allocate(self, claim: Object, parameters: Mapping[str, str], region: str, zone: str) -> str:
        storage, name = parameters["storage"], f"vm-{OWNER}-pvc-{claim['metadata']['uid']}"
        size = kibibytes(claim["spec"]["resources"]["requests"]["storage"])
        body = {"filename": name, "vmid": str(OWNER), "size": f"{size}K", "format": "raw"}
        await self._proxmox.request(
            region, "POST", f"nodes/{zone}/storage/{storage}/content", body, fine="already exists"
        )
        return f"{region}/{zone}/{storage}/{name}"

    async def _remove(self, volume: Object) -> None:
        region, zone, storage, name = volume["spec"]["csi"]["volumeHandle"].split("/")
        path = f"nodes/{zone}/storage/{storage}/content/{storage}:{name}"
        try:
            await self._proxmox.request(region, "DELETE", path, None, fine="does not exist")
            await self._api.delete(f"/api/v1/persistentvolumes/{volume['metadata']['name']}", actor=self._actor)
        except (ProvisioningError, ApiError) as error:
            where = volume["metadata"]["name"]
            self._scene.around.log.record("csi", "DELETE", where, "failed", why=str(error)[:300])


def place_of(node: Object) -> tuple[str, str] | None:
    labels = node["metadata"].get("labels") or {}
    return (labels[REGION], labels[ZONE]) if labels.get(REGION) and labels.get(ZONE) else None


def capacity(storage_class: str, region: str, zone: str, available: int) -> Object:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIStorageCapacity",
        "metadata": {"name": f"csisc-{storage_class}-{region}-{zone}"},
        "storageClassName": storage_class,
        "nodeTopology": {"matchLabels": {REGION: region, ZONE: zone}},
        "capacity": str(available),
    }


def waits_for_us(claim: Object) -> bool:
    annotations = claim["metadata"].get("annotations") or {}
    pending = claim.get("status", {}).get("phase") == "Pending" and not claim["spec"].get("volumeName")
    return bool(pending and annotations.get(PROVISIONER) == PROXMOX_DRIVER)


def released(volume: Object) -> bool:
    spec, phase = volume["spec"], volume.get("status", {}).get("phase")
    ours = (spec.get("csi") or {}).get("driver") == PROXMOX_DRIVER
    return ours and phase == "Released" and spec.get("persistentVolumeReclaimPolicy") == "Delete"


def kibibytes(quantity: str) -> int:
    for suffix, factor in UNITS.items():
        if quantity.endswith(suffix):
            return max(1, int(float(quantity.removesuffix(suffix)) * factor) // 1024)
    return max(1, int(quantity) // 1024)


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
