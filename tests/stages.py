"""The table of the bootstrap: what each stage must wait for, directly."""

from __future__ import annotations

from tests.engine import Run

# Gate or resource -> what it names in depends_on. `{}` is the cluster's name; a star stands for one per node or host.
STAGES: dict[str, set[str]] = {
    "HealthGate {}-proxmox-preflight": set(),
    "Schematic {}-schematic": {"Gate {}-proxmox-preflight"},
    "File *": {"Gate {}-proxmox-preflight", "Schematic {}-schematic"},
    "VmLegacy *": {"File @host"},
    "HealthGate {}-talos-api": {"VmLegacy *"},
    "TalosCluster {}": {
        "VmLegacy *",
        "File *",
        "Gate {}-proxmox-preflight",
        "Schematic {}-schematic",
        "Gate {}-talos-api",
    },
    "Rollout {}-machine-configurations": {"ConfigurationApply *", "Schematic {}-schematic", "Secrets {}-secrets"},
    "HealthGate {}-talos-configured": {"ConfigurationApply *"},
    "Bootstrap {}-bootstrap": {"Gate {}-talos-configured", "Secrets {}-secrets"},
    "HealthGate {}-etcd": {"Bootstrap {}-bootstrap"},
    "HealthGate {}-kubelets": {"Bootstrap {}-bootstrap"},
    "Kubeconfig {}-kubeconfig": {"Gate {}-etcd", "Secrets {}-secrets"},
    "HealthGate {}-kube-api": {"Gate {}-etcd", "Gate {}-kubelets"},
    "HealthGate {}-vip": {"Gate {}-kube-api"},
    "HealthGate {}-nodes-registered": {"Gate {}-kube-api"},
    "kubernetes kubernetes": {"@TalosCluster", "Kubeconfig {}-kubeconfig"},
    "Prerequisites {}": {"@TalosCluster"},
    "ConfigMap cluster-settings": {"Namespace flux-system"},
    "HealthGate {}-prerequisites": {"Namespace *", "ConfigMap cluster-settings"},
    "CiliumRelease {}": {"Namespace *", "ConfigMap cluster-settings", "Gate {}-prerequisites"},
    "HealthGate {}-crds": {"ConfigGroup {}-crds"},
    "Release cilium": {"Gate {}-crds"},
    "Rollout {}-cilium": {"Release cilium"},
    "HealthGate {}-cilium-workloads": {"Release cilium"},
    "HealthGate {}-nodes-ready": {"Gate {}-cilium-workloads"},
    "HealthGate {}-cilium-agents": {"Gate {}-cilium-workloads"},
    "HealthGate {}-pod-network": {"Gate {}-cilium-workloads"},
    "HealthGate {}-cilium-crds": {"Gate {}-cilium-workloads"},
    "CiliumLoadBalancerIPPool {}-pool-mesh": {"@network"},
    "CiliumLoadBalancerIPPool {}-pool-gateway": {"@network"},
    "CiliumL2AnnouncementPolicy {}-announcement": {"@network"},
    "HealthGate {}-lb-pools": {"@network", "CiliumLoadBalancerIPPool *", "CiliumL2AnnouncementPolicy {}-announcement"},
    "Secret {}-sealing-key": {"@CiliumRelease", "PrivateKey {}-sealing-key", "SelfSignedCert {}-sealing-certificate"},
    "HealthGate {}-sealing-key": {"Secret {}-sealing-key"},
    "SealedFile {}-proxmox-csi-plugin-sealed": {"Gate {}-sealing-key", "SelfSignedCert {}-sealing-certificate"},
    "SealedFile {}-groundwork-canary-sealed": {"Gate {}-sealing-key", "SelfSignedCert {}-sealing-certificate"},
    "Command {}-publish": {"SealedFile *", "SelfSignedCert {}-sealing-certificate"},
    "HealthGate {}-sealed-files": {"SealedFile *", "Command {}-publish"},
    "FluxBootstrap {}": {"@SealedSecretsKey"},
    "HealthGate {}-flux-operator": {"ConfigFile {}-flux-operator"},
    "FluxInstance flux": {"Gate {}-flux-operator", "Secret {}-git"},
    "HealthGate {}-flux-instance": {"FluxInstance flux"},
    "HealthGate {}-git-synced": {"Gate {}-flux-instance"},
    "HealthGate {}-secrets-unsealed": {"Gate {}-git-synced"},
    "HealthGate {}-storage": {"Gate {}-secrets-unsealed"},
    "HealthGate {}-final": {"@FluxBootstrap"},
}
NETWORK = ("nodes-ready", "cilium-agents", "pod-network", "cilium-crds")


def recorded_edges(graph: Run) -> dict[str, set[str]]:
    """Direct dependencies of everything the table speaks of, by short name."""
    names = {urn: f"{each.type.split(':')[-1]} {each.name}" for urn, each in graph.all.items()}
    return {
        names[urn]: {names[dependency] for dependency in each.dependencies}
        for urn, each in graph.all.items()
        if _in_table(each.type, each.name)
    }


def expected_edges(graph: Run, stack: str) -> dict[str, set[str]]:
    """The table, filled in with this stack's nodes and hosts."""
    edges: dict[str, set[str]] = {}
    for key, needs in STAGES.items():
        for name in _expand(graph, stack, key):
            edges[name] = {each for need in needs for each in _resolve(graph, stack, need, name)}
    return edges


def _in_table(type_: str, name: str) -> bool:
    short = type_.rsplit(":", maxsplit=1)[-1]
    if short == "Gate":
        return False
    prefixes = {key.split(" ")[0] for key in STAGES}
    explicit = {key.split(" ")[1].replace("{}", "") for key in STAGES if key.startswith(f"{short} ")}
    return short in prefixes and any(each == "*" or name.endswith(each) for each in explicit)


def _expand(graph: Run, stack: str, pattern: str) -> list[str]:
    short, name = pattern.replace("{}", stack).split(" ")
    if name != "*":
        return [f"{short} {name}"]
    return [f"{short} {each.name}" for each in graph.all.values() if each.type.split(":")[-1] == short]


def _resolve(graph: Run, stack: str, need: str, of: str) -> list[str]:
    if need == "@network":
        return [f"Gate {stack}-{gate}" for gate in NETWORK]
    if need == "File @host":
        machine = graph.one("vmLegacy:VmLegacy", of.split(" ")[1])
        return [f"File {stack}-image-{machine.inputs['nodeName']}"]
    if need.startswith("@"):
        inside = graph.inside(graph.one(f"groundwork:index:{need[1:]}", stack).urn)
        kept = [graph.all[urn] for urn in inside if graph.all[urn].custom or graph.all[urn].remote]
        return [f"{each.type.split(':')[-1]} {each.name}" for each in kept]
    return _expand(graph, stack, need)
