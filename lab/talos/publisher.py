"""Writes what a machine is and does into its resources."""

from __future__ import annotations

from ipaddress import IPv4Interface
from typing import TYPE_CHECKING

from lab.talos import specs
from lab.talos.applied_config import LINK_NAME
from lab.talos.service import Service, State
from talos_api import machine_pb2
from talos_api import resources as kinds

if TYPE_CHECKING:
    from lab.talos.machine import Machine

REQUIRED = ("apid", "machined", "kubelet")
REQUIRED_ON_CONTROL_PLANES = (*REQUIRED, "etcd", "trustd")
STATIC_PODS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
SYSTEM_PARTITIONS = {
    "EFI": (2 * 1024**3, ("vfat", 2)),
    "META": (1024**2, ("none", 0)),
    "STATE": (100 * 1024**2, ("xfs", 1)),
}


def publish_facts(machine: Machine) -> None:
    """What changes only with the boot, the config or a fault."""
    if machine.stage == "unknown":
        return
    _publish_disks(machine)
    _publish_network(machine)
    _publish_diagnostics(machine)
    _publish_config(machine)


def publish_service(machine: Machine, service: Service) -> None:
    """Only a service that runs has a resource."""
    if service.state is not State.RUNNING:
        machine.store.remove(kinds.SERVICE, service.id)
        return
    unknown = service.healthy is None
    spec = specs.service(running=True, healthy=service.healthy is True, unknown=unknown)
    machine.store.put(kinds.SERVICE, service.id, spec, "v1alpha1.ServiceController")


def publish_status(machine: Machine) -> None:
    if machine.stage == "unknown":
        return
    spec = specs.machine_status(machine.stage, _unmet(machine))
    before = machine.store.get(kinds.MACHINE_STATUS, kinds.MACHINE_STATUS_ID)
    machine.store.put(kinds.MACHINE_STATUS, kinds.MACHINE_STATUS_ID, spec, "runtime.MachineStatusController")
    if machine.store.get(kinds.MACHINE_STATUS, kinds.MACHINE_STATUS_ID) is not before:
        status = machine_pb2.MachineStatusEvent.FromString(spec.proto.SerializeToString())
        machine.events.publish(status)
    synced = specs.time_status(synced=machine.time_synced, disabled=False)
    machine.store.put(kinds.TIME_STATUS, kinds.TIME_STATUS_ID, synced, "time.SyncController")
    _publish_static_pods(machine)
    _publish_addresses(machine)


def _unmet(machine: Machine) -> list[tuple[str, str]]:
    """The checks Talos makes while it boots and runs, in its words."""
    if machine.stage not in ("booting", "running"):
        return []
    unmet = [] if machine.time_synced else [("time", "time is not synced")]
    problems = _service_problems(machine)
    if problems:
        unmet.append(("services", ", ".join(problems)))
    if machine.config is not None and not machine.kubelet.node_ready:
        unmet.append(("nodeReady", f'node "{machine.name}" is not ready'))
    return unmet


def _service_problems(machine: Machine) -> list[str]:
    control_plane = machine.config is not None and machine.config.is_control_plane
    problems = []
    for id in REQUIRED_ON_CONTROL_PLANES if control_plane else REQUIRED:
        service = machine.services.get(id)
        if service is None or service.state is not State.RUNNING:
            problems.append(f"{id} not running")
        elif service.healthy is False:
            problems.append(f"{id} not healthy")
    return problems


def _publish_static_pods(machine: Machine) -> None:
    if machine.config is None or not machine.config.is_control_plane or machine.kubelet.node_name is None:
        machine.store.replace(kinds.STATIC_POD_STATUS, {})
        return
    ready = machine.etcd.running and machine.membership.kubernetes.ready.is_set()
    ids = [f"kube-system/{pod}-{machine.kubelet.node_name}" for pod in STATIC_PODS]
    pods = {id: specs.static_pod_status(ready=ready) for id in ids}
    machine.store.replace(kinds.STATIC_POD_STATUS, pods, "k8s.KubeletStaticPodController")


def _publish_disks(machine: Machine) -> None:
    disks = {f"sd{chr(97 + index)}": size for index, size in enumerate(machine.boot.disks.values())}
    machine.store.replace(
        kinds.DISK, {id: specs.disk(f"/dev/{id}", size) for id, size in disks.items()}, "block.DisksController"
    )
    system = disks.get("sda")
    if system is None or machine.config is None:
        return
    partitions = {**SYSTEM_PARTITIONS, "EPHEMERAL": (system - 3 * specs.GIBIBYTE, ("xfs", 1))}
    volumes = {
        label: specs.volume_status("/dev/sda", f"/dev/sda{index}", size, filesystem)
        for index, (label, (size, filesystem)) in enumerate(partitions.items(), start=1)
    }
    machine.store.replace(kinds.VOLUME_STATUS, volumes, "block.VolumeManagerController")
    mounts = {"EPHEMERAL": specs.mount_status("/dev/sda4", "/var", "xfs")}
    machine.store.replace(kinds.MOUNT_STATUS, mounts, "runtime.MountStatusController")


def _publish_network(machine: Machine) -> None:
    _publish_addresses(machine)
    alias = machine.config.alias(machine.boot.mac) if machine.config else None
    machine.store.put(
        kinds.LINK_STATUS, LINK_NAME, specs.link_status(machine.boot.mac, alias), "network.LinkStatusController"
    )
    for id in ("current", "routed", "accumulative"):
        machine.store.put(
            kinds.NODE_ADDRESS, id, specs.node_address(machine.addresses), "network.NodeAddressController"
        )
    machine.store.put(
        kinds.NODE_ADDRESS, "default", specs.node_address(machine.addresses[:1]), "network.NodeAddressController"
    )
    machine.store.put(
        kinds.HOSTNAME_STATUS, "hostname", specs.hostname_status(machine.name), "network.HostnameSpecController"
    )


def _publish_addresses(machine: Machine) -> None:
    """The shared address is on one control plane, beside its own."""
    vip = machine.etcd.held_vip
    held = [IPv4Interface(vip)] if vip else []
    addresses = {
        f"{LINK_NAME}/{address}": specs.address_status(address, LINK_NAME) for address in [*machine.addresses, *held]
    }
    machine.store.replace(kinds.ADDRESS_STATUS, addresses, "network.AddressStatusController")


def _publish_diagnostics(machine: Machine) -> None:
    fault = machine.around.faults.active("diagnostics-warning", machine.name)
    found = {}
    if fault is not None:
        message = fault.options.get("message", "host and Kubernetes pod/service CIDR addresses overlap")
        found["address-overlap"] = specs.diagnostic(message, [f"host addresses: {machine.addresses}"])
    machine.store.replace(kinds.DIAGNOSTIC, found, "runtime.DiagnosticsController")


def _publish_config(machine: Machine) -> None:
    config = machine.config
    if config is None:
        return
    machine.store.put(kinds.MACHINE_CONFIG, "v1alpha1", specs.machine_config(config.data))
    machine.store.put(
        kinds.KUBELET_SPEC, "kubelet", specs.kubelet(config.kubelet_image, machine.name), "k8s.KubeletSpecController"
    )
    machine.store.put(kinds.NODENAME, "nodename", specs.nodename(machine.name), "k8s.NodenameController")
    vip = config.vip(machine.boot.mac)
    operators = {f"vip/{LINK_NAME}": specs.vip_operator(vip, LINK_NAME)} if vip else {}
    machine.store.replace(kinds.OPERATOR_SPEC, operators, "network.OperatorMergeController")
    if config.is_control_plane:
        spec = specs.bootstrap_manifests(config.cluster, config.pod_subnets, config.cni)
        machine.store.put(
            kinds.BOOTSTRAP_MANIFESTS_CONFIG, "manifests", spec, "k8s.ControlPlaneBootstrapManifestsController"
        )
