"""Stack files that must be refused: the rule broken, a patch on a committed stack, the words of the refusal."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any

from tests.config_stacks import DELETE, Patch

TOKEN = "root@pam!ci=33333333-3333-3333-3333-333333333333"
KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIB\n-----END RSA PRIVATE KEY-----"
BASE64_KEY = base64.b64encode(KEY.encode()).decode()
CHART = {
    "name": "spegel",
    "chart": "oci://ghcr.io/spegel-org/helm-charts/spegel",
    "version": "0.7.4",
    "namespace": "spegel",
}
MESHED = {"cluster.mesh.enabled": True, "ciliumCa": "env:CILIUM_CA"}


@dataclass(frozen=True, kw_only=True)
class Bad:
    name: str
    patch: Patch
    words: list[str]
    stack: str = "infra"
    other: Patch = field(default_factory=dict)
    """Patch on the other committed stack."""
    unset: str | None = None
    """Environment variable that is missing."""


def bad(name: str, patch: Patch, *words: str, **more: Any) -> Bad:
    return Bad(name=name, patch=patch, words=list(words), **more)


def chart(**changes: Any) -> dict[str, Any]:
    return CHART | changes


SHAPE = [
    bad("unknown-key", {"cluster.netwrok": {}}, "cluster.netwrok: unknown key", "did you mean network?"),
    bad("unknown-nested-key", {"cluster.proxmox.brdige": "vmbr1"}, "cluster.proxmox.brdige", "did you mean bridge?"),
    bad("unknown-node-key", {"cluster.nodes.infra-w-1.adress": "10.25.11.30"}, "infra-w-1.adress", "mean address?"),
    bad(
        "unknown-list-item-key",
        {"cluster.charts": [chart(vers="1")]},
        "cluster.charts[0].vers",
        "did you mean version?",
    ),
    bad(
        "unknown-optional-key",
        {"cluster.storage.csi.storage_clas": "x"},
        "csi.storage_clas",
        "did you mean storage_class?",
    ),
    bad("unknown-key-like-nothing", {"cluster.zzz": 1}, "cluster.zzz: unknown key", "remove it"),
    bad(
        "unknown-key-beside-cluster", {"proxmoxTokn": "env:PROXMOX_TOKEN"}, "proxmoxTokn", "did you mean proxmoxToken?"
    ),
    bad("missing-key", {"cluster.network.gateway": DELETE}, "cluster.network.gateway: is missing"),
    bad("missing-section", {"cluster.proxmox": DELETE}, "cluster.proxmox: is missing"),
    bad("missing-cluster", {"cluster": DELETE}, "the stack file describes no cluster"),
    bad("cluster-is-text", {"cluster": "infra"}, "cluster: is not an object"),
    bad("section-is-a-list", {"cluster.network": []}, "cluster.network: should be", "found []"),
    bad("wrong-role", {"cluster.nodes.infra-w-1.role": "controlplan"}, "infra-w-1.role", "did you mean controlplane?"),
    bad(
        "wrong-scsi-controller", {"cluster.proxmox.scsi_controller": "lsi"}, "'virtio-scsi-single' or 'virtio-scsi-pci'"
    ),
    bad("number-is-text", {"cluster.nodes.infra-w-1.cores": "many"}, "infra-w-1.cores", "found 'many'"),
    bad("number-is-a-truth", {"cluster.cilium.id": True}, "cluster.cilium.id: True is not a number"),
    bad("name-is-empty", {"cluster.proxmox.bridge": ""}, "cluster.proxmox.bridge", "a name without spaces"),
    bad(
        "node-wrong-twice",
        {"cluster.nodes.infra-w-1": {"cpu": 2}},
        "infra-w-1.cpu: unknown key",
        "infra-w-1.role: is missing",
    ),
    bad("vlan-out-of-range", {"cluster.proxmox.vlan": 5000}, "cluster.proxmox.vlan", "at most 4094, not 5000"),
    bad("mtu-too-small", {"cluster.proxmox.mtu": 500}, "cluster.proxmox.mtu", "at least 1280"),
    bad("no-nodes", {"cluster.nodes": {}}, "cluster.nodes", "at least 1 item"),
    bad("node-name-not-a-label", {"cluster.nodes.Infra_W": {}}, "cluster.nodes.Infra_W", "lower-case letters"),
    bad("label-not-allowed", {"cluster.nodes.infra-w-1.labels": {"a b": "c"}}, "infra-w-1.labels.a b"),
    bad(
        "taint-without-effect",
        {"cluster.nodes.infra-w-1.taints": {"gpu": "true"}},
        "infra-w-1.taints.gpu",
        "NoSchedule",
    ),
    bad("extension-with-tag", {"cluster.talos.extensions": ["siderolabs/i915:v1"]}, "talos.extensions[0]"),
    bad("endpoint-without-tls", {"cluster.proxmox.endpoint": "http://p:8006"}, "cluster.proxmox.endpoint", "^https://"),
    bad("path-leaves-repository", {"cluster.sealing.directory": "../x"}, "sealing.directory", "without .."),
    bad("git-over-file", {"cluster.flux.url": "file:///srv/git"}, "cluster.flux.url", "^https://"),
    bad(
        "address-name-not-a-variable",
        {"cluster.lb_addresses.my-app": "10.25.11.121"},
        "lb_addresses.my-app",
        "underscores",
    ),
    bad("hosts-not-a-mapping", {"cluster.proxmox.hosts": ["atlas"]}, "cluster.proxmox.hosts: should be"),
    bad("pool-without-addresses", {"cluster.lb_pools.mesh": {}}, "lb_pools.mesh", "exactly one of range and cidr"),
    bad("pool-given-twice", {"cluster.lb_pools.mesh.cidr": "10.25.11.96/29"}, "lb_pools.mesh", "exactly one of"),
]

ADDRESSES = [
    bad("address-not-an-address", {"cluster.nodes.infra-w-1.address": "10.25.11"}, "not an IPv4 address"),
    bad("address-with-prefix", {"cluster.network.vip": "10.25.11.10/24"}, "network.vip", "without a prefix"),
    bad("network-not-a-network", {"cluster.network.subnet": "lan"}, "network.subnet", "is not an IPv4 network"),
    bad("network-without-prefix", {"cluster.network.pods": "10.244.0.0"}, "has no prefix length"),
    bad("host-bits-set", {"cluster.network.subnet": "10.25.11.5/24"}, "has host bits set", "write 10.25.11.0/24"),
    bad("range-not-a-range", {"cluster.network.dhcp_range": "10.25.11.200"}, "dhcp_range", "write first-last"),
    bad(
        "range-backwards",
        {"cluster.network.dhcp_range": "10.25.11.250-10.25.11.200"},
        "runs backwards",
        "write 10.25.11.200-10.25.11.250",
    ),
    bad("mac-not-a-mac", {"cluster.nodes.infra-w-1.mac": "BC:24:11"}, "infra-w-1.mac", "is not a MAC address"),
    bad("mac-multicast", {"cluster.nodes.infra-w-1.mac": "BD:24:11:00:00:01"}, "is a multicast address"),
    bad(
        "duplicate-address",
        {"cluster.nodes.infra-w-2.address": "10.25.11.21"},
        "cluster.nodes.infra-w-2.address: 10.25.11.21 is used by node infra-w-1 and by node infra-w-2",
        "10.25.11.2 is free",
    ),
    bad("node-on-the-vip", {"cluster.nodes.infra-w-1.address": "10.25.11.10"}, "used by the VIP and by node infra-w-1"),
    bad(
        "node-on-the-gateway", {"cluster.nodes.infra-w-1.address": "10.25.11.1"}, "by the gateway and by node infra-w-1"
    ),
    bad(
        "node-in-a-pool",
        {"cluster.nodes.infra-w-1.address": "10.25.11.125"},
        "by node infra-w-1 and by the pool gateway",
    ),
    bad(
        "node-in-dhcp-range",
        {"cluster.nodes.infra-w-1.address": "10.25.11.210"},
        "the DHCP range and by node infra-w-1",
    ),
    bad("vip-in-a-pool", {"cluster.network.vip": "10.25.11.100"}, "by the VIP and by the pool mesh"),
    bad("vip-in-dhcp-range", {"cluster.network.vip": "10.25.11.201"}, "by the DHCP range and by the VIP"),
    bad(
        "pool-in-dhcp-range",
        {"cluster.lb_pools.gateway.range": "10.25.11.120-10.25.11.205"},
        "10.25.11.200-10.25.11.205 is used by the DHCP range and by the pool gateway",
    ),
    bad(
        "pools-overlap",
        {"cluster.lb_pools.gateway.range": "10.25.11.101-10.25.11.129"},
        "10.25.11.101 is used by the pool mesh and by the pool gateway",
    ),
    bad("node-outside-subnet", {"cluster.nodes.infra-w-1.address": "10.25.13.21"}, "outside the subnet 10.25.11.0/24"),
    bad("vip-outside-subnet", {"cluster.network.vip": "10.25.13.10"}, "cluster.network.vip", "outside the subnet"),
    bad(
        "gateway-outside-subnet",
        {"cluster.network.gateway": "10.25.13.1"},
        "cluster.network.gateway",
        "outside the subnet",
    ),
    bad(
        "pool-outside-subnet",
        {"cluster.lb_pools.spare": {"cidr": "10.99.0.0/28"}},
        "lb_pools.spare",
        "outside the subnet",
    ),
    bad("node-is-broadcast", {"cluster.nodes.infra-w-1.address": "10.25.11.255"}, "is the broadcast address"),
    bad("node-is-network", {"cluster.nodes.infra-w-1.address": "10.25.11.0"}, "is the network address"),
    bad(
        "pods-overlap-services",
        {"cluster.network.services": "10.244.128.0/17"},
        "overlaps the pod network 10.244.0.0/16",
    ),
    bad(
        "pods-overlap-nodes", {"cluster.network.pods": "10.25.0.0/16"}, "the pod network 10.25.0.0/16 overlaps the node"
    ),
    bad("pods-too-small", {"cluster.network.pods": "10.244.0.0/23"}, "has no /24 for each of 6 nodes"),
    bad("services-too-small", {"cluster.network.services": "10.245.0.0/28"}, "too small for services"),
    bad(
        "static-address-outside-pools", {"cluster.lb_addresses.gateway": "10.25.11.140"}, "is outside every pool: mesh"
    ),
    bad("static-address-without-pools", {"cluster.lb_pools": {}}, "10.25.11.100 is outside every pool: none"),
    bad("static-address-twice", {"cluster.lb_addresses.gateway": "10.25.11.100"}, "is used by mesh and by gateway"),
    bad(
        "native-routing-misses-pods",
        {"cluster.cilium.native_routing_cidr": "10.200.0.0/16"},
        "10.200.0.0/16 does not cover the pod network 10.244.0.0/16",
    ),
]

MACHINES = [
    bad("duplicate-vmid", {"cluster.nodes.infra-w-2.vmid": 1121}, "VM id 1121 is used by infra-w-1 and by infra-w-2"),
    bad(
        "duplicate-mac",
        {"cluster.nodes.infra-w-2.mac": "bc-24-11-19-0b-15"},
        "MAC address BC:24:11:19:0B:15 is used by infra-w-1 and by infra-w-2",
    ),
    bad("vmid-reserved", {"cluster.nodes.infra-w-1.vmid": 99}, "infra-w-1.vmid", "at least 100"),
    bad("unknown-host", {"cluster.nodes.infra-w-1.host": "atlsa"}, "stands on atlsa", "did you mean atlas?"),
    bad(
        "even-control-planes",
        {"cluster.nodes.infra-cp-3": DELETE},
        "2 control planes (infra-cp-1, infra-cp-2)",
        "have 3",
    ),
    bad(
        "no-control-plane",
        {f"cluster.nodes.infra-cp-{n}": DELETE for n in (1, 2, 3)},
        "0 control planes (none)",
        "role: controlplane",
    ),
    bad(
        "control-planes-share-host",
        {"cluster.nodes.infra-cp-2.host": "atlas", "cluster.strict_placement": True},
        "control planes infra-cp-1, infra-cp-2 share the host atlas while there are 3 hosts",
    ),
    bad("control-plane-too-small", {"cluster.nodes.infra-cp-1.memory": 1024}, "1024 is too little", "at least 2048"),
    bad(
        "bootstrap-node-unknown",
        {"cluster.talos.bootstrap_node": "infra-cp-9"},
        "is not among the nodes",
        "did you mean",
    ),
    bad("bootstrap-node-is-worker", {"cluster.talos.bootstrap_node": "infra-w-1"}, "infra-w-1 is a worker"),
    bad(
        "rollout-of-unknown-node",
        {"cluster.rollout": {"nodes": ["infra-w-11"]}},
        "cluster.rollout.nodes",
        "did you mean",
    ),
    bad(
        "patch-of-unknown-node",
        {"cluster.talos.patches": {"nodes": {"web-7": []}}},
        "patches.nodes: web-7",
        "remove it",
    ),
    bad(
        "nothing-schedulable",
        {f"cluster.nodes.infra-w-{n}": DELETE for n in (1, 2, 3)},
        "nothing could ever be scheduled",
    ),
    bad("disks-of-one-size", {"cluster.nodes.infra-w-1.disks": [{"size": 100}]}, "2 disks of infra-w-1 are 100 GiB"),
    bad("disk-too-small", {"cluster.nodes.infra-w-1.disk": 5}, "infra-w-1.disk", "at least 10"),
]

VERSIONS = [
    bad(
        "floating-latest",
        {"cluster.versions.talos": "latest"},
        "versions.talos: 'latest' does not name one exact release",
    ),
    bad("floating-minor", {"cluster.versions.cilium": "1.20"}, "versions.cilium: '1.20' does not name"),
    bad("floating-number", {"cluster.versions.cilium": 1.2}, "versions.cilium: '1.2' does not name"),
    bad("floating-wildcard", {"cluster.versions.flux": "v1.x"}, "versions.flux: 'v1.x' does not name"),
    bad("floating-star", {"cluster.versions.kubernetes": "*"}, "versions.kubernetes: '*' does not name"),
    bad("floating-branch", {"cluster.versions.gateway_api": "main"}, "versions.gateway_api: 'main' does not name"),
    bad("version-with-v", {"cluster.versions.talos": "v1.13.9"}, "write 1.13.9"),
    bad("floating-chart", {"cluster.charts": [chart(version="~0.7")]}, "charts[0].version: '~0.7' does not name"),
    bad("floating-crds", {"cluster.crds": [{"url": "https://h.example/a/main/crds.yaml"}]}, "crds[0].url", "floats"),
    bad("talos-with-mount-race", {"cluster.versions.talos": "1.13.7"}, "Talos 1.13.7 is outside >=1.13.8 <1.14.0"),
    bad("talos-next-format", {"cluster.versions.talos": "1.14.0"}, "Talos 1.14.0 is outside >=1.13.8 <1.14.0"),
    bad("contract-ahead", {"cluster.versions.talos_contract": "1.14.0"}, "is newer than the Talos 1.13.9"),
    bad(
        "kubernetes-too-new", {"cluster.versions.kubernetes": "1.37.0"}, "not supported by Talos 1.13.9", "1.31 to 1.36"
    ),
    bad("kubernetes-too-old", {"cluster.versions.kubernetes": "1.30.9"}, "Kubernetes 1.30.9 is not supported"),
    bad(
        "gateway-api-too-old", {"cluster.versions.gateway_api": "1.4.1"}, "Cilium 1.20.1 and Gateway API 1.4.1", "1.6.1"
    ),
    bad(
        "cilium-unknown",
        {"cluster.versions.cilium": "1.18.5"},
        "Cilium 1.18.5 and Gateway API 1.6.1 are not a known pair",
    ),
]

SOFTWARE = [
    bad("cilium-id-zero", {"cluster.cilium.id": 0}, "cluster.cilium.id", "at least 1"),
    bad("cilium-id-too-large", {"cluster.cilium.id": 256}, "cluster.cilium.id", "at most 255"),
    bad("name-too-long", {"cluster.name": "a" * 33}, "cluster.name", "at most 32 characters"),
    bad("name-not-allowed", {"cluster.name": "Infra_1"}, "cluster.name", "is not allowed here"),
    bad(
        "dns-cut-off",
        {"cluster.cilium.bpf_masquerade": True, "cluster.cilium.host_legacy_routing": False},
        "forwardKubeDNSToHost",
        "cilium.bpf_masquerade",
        "host_legacy_routing: true",
    ),
    bad(
        "dns-cut-off-by-values",
        {"cluster.cilium.values": {"bpf": {"masquerade": True, "hostLegacyRouting": False}}},
        "cuts cluster DNS off",
    ),
    bad(
        "dns-cut-off-by-patch",
        {
            "cluster.cilium.values": {"bpf": {"masquerade": True, "hostLegacyRouting": False}},
            "cluster.talos.host_dns_forward": False,
            "cluster.talos.patches.all": [{"machine": {"features": {"hostDNS": {"forwardKubeDNSToHost": True}}}}],
        },
        "cuts cluster DNS off",
    ),
    bad("bgp-without-peers", {"cluster.cilium.announce": "bgp"}, "announce is bgp and bgp is missing"),
    bad(
        "bgp-not-announced",
        {"cluster.cilium.bgp": {"local_asn": 64512, "peers": [{"address": "10.25.11.1", "asn": 64513}]}},
        "announce is l2 and bgp is given",
    ),
    bad(
        "values-the-chart-does-not-read",
        {
            "cluster.cilium.values": {
                "cgroup": {"automount": {"enabled": False}},
                "policy": {"enableNonDefaultDenyPolicies": False},
                "dnsProxy": {"enabled": True},
            }
        },
        "cilium.values.cgroup.automount: no such key in the chart of Cilium 1.20.1",
        "did you mean cgroup.autoMount?",
        "did you mean enableNonDefaultDenyPolicies?",
        "cilium.values.dnsProxy.enabled",
        "has 3 problems",
    ),
    bad("values-name-the-cluster", {"cluster.cilium.values": {"cluster": {"id": 7}}}, "values.cluster", "two sources"),
    bad("dhcp-by-document", {"cluster.talos.patches.worker": [{"kind": "DHCPv4Config"}]}, "worker[0]: turns DHCP on"),
    bad(
        "dhcp-by-interface",
        {"cluster.talos.patches.nodes": {"infra-w-1": [{"machine": {"network": {"interfaces": [{"dhcp": True}]}}}]}},
        "patches.nodes.infra-w-1[0]: turns DHCP on",
    ),
    bad(
        "host-name-twice",
        {"cluster.talos.patches.all": [{"machine": {"network": {"hostname": "x"}}}]},
        "sets a host name",
    ),
    bad("kind-of-next-talos", {"cluster.talos.patches.all": [{"kind": "KubePrismConfig"}]}, "belongs to Talos 1.14"),
    bad(
        "insecure-with-ca",
        {"cluster.proxmox.insecure": True, "cluster.proxmox.ca": "-----BEGIN CERTIFICATE-----"},
        "insecure",
    ),
    bad("ca-not-pem", {"cluster.proxmox.ca": "pve-root-ca.pem"}, "cluster.proxmox.ca: is not a PEM certificate"),
    bad(
        "device-path", {"cluster.talos.patches.all": [{"machine": {"install": {"disk": "/dev/sda"}}}]}, "names a device"
    ),
    bad(
        "provider-component-on-consumer",
        {"cluster.storage.components": ["rook-ceph-operator"]},
        "role is consumer",
        stack="apps",
    ),
    bad(
        "provider-chart-on-consumer", {"cluster.charts": [chart(name="longhorn")]}, "charts[0]: longhorn", stack="apps"
    ),
    bad("storage-without-role", {"cluster.storage.role": "none"}, "is none although storage.csi is given"),
    bad(
        "helm-release-shorter-than-attempt",
        {"cluster.timeouts": {"attempt": 300}},
        "not longer than timeouts.attempt, 300 s",
    ),
    bad(
        "kustomization-too-short",
        {"cluster.timeouts": {"kustomization": 200}},
        "200 s is not longer than timeouts.helm_release",
    ),
    bad(
        "gate-shorter-than-kustomization",
        {"cluster.deadlines": {"G16": 400}},
        "400 s is not longer than timeouts.kustomization",
    ),
    bad("gate-shorter-than-attempt", {"cluster.deadlines": {"G12b": 5}}, "deadlines.G12b: 5 s is not longer than"),
    bad("unknown-gate", {"cluster.deadlines": {"G4x": 100}}, "G4x is not a gate", "did you mean G4?"),
    bad("chart-twice", {"cluster.charts": [CHART, CHART]}, "charts[1].name: spegel is already the name"),
    bad(
        "chart-named-cilium",
        {"cluster.charts": [chart(name="cilium")]},
        "cilium is already the name of another release",
    ),
    bad(
        "chart-needs-unknown",
        {"cluster.charts": [chart(needs=["spege"])]},
        "spegel needs spege",
        "did you mean spegel?",
    ),
    bad(
        "charts-in-a-circle",
        {"cluster.charts": [chart(needs=["b"]), chart(name="b", needs=["spegel"])]},
        "these wait for each other",
        "spegel",
    ),
    bad("chart-without-source", {"cluster.charts": [chart(chart="spegel")]}, "exactly one of an oci:// address"),
    bad("no-cluster-dns", {"cluster.talos.coredns": False}, "is false and no chart has gate: G12a"),
    bad("two-cluster-dns", {"cluster.charts": [chart(name="coredns", gate="G12a")]}, "is true and coredns of charts"),
    bad("reserved-namespace", {"cluster.namespaces": {"kube-tools": {}}}, "Kubernetes's own namespace"),
]

SECRETS = [
    bad("secret-encrypted-in-cluster", {"cluster.flux.branch": {"secure": "AAAB"}}, "cluster.flux.branch", "in clear"),
    bad("secret-by-key", {"cluster.proxmox.token": "abc"}, "cluster.proxmox.token: a secret inside cluster"),
    bad("secret-by-key-in-values", {"cluster.cilium.values": {"x": [{"apiKey": "abc"}]}}, "values.x[0].apiKey"),
    bad(
        "secret-in-patch",
        {"cluster.talos.patches.all": [{"cluster": {"secret": "c2VjcmV0LXZhbHVl="}}]},
        "cluster.secret: a secret",
    ),
    bad(
        "secret-key-as-base64",
        {"cluster.cilium.values": {"tls": {"ca": {"key": BASE64_KEY}}}},
        "tls.ca.key: holds what looks",
    ),
    bad("secret-private-key", {"cluster.proxmox.ca": KEY}, "cluster.proxmox.ca: holds what looks like a secret"),
    bad(
        "secret-proxmox-token", {"cluster.proxmox.pool": TOKEN}, "cluster.proxmox.pool: holds what looks like a secret"
    ),
    bad(
        "secret-in-url",
        {"cluster.flux.url": "https://me:pass@git.home.arpa/a.git"},
        "flux.url: holds what looks like a secret",
    ),
    bad("environment-in-cluster", {"cluster.flux.branch": "env:BRANCH"}, "env: is read only for the secrets beside"),
    bad(
        "proxmox-token-missing",
        {"proxmoxToken": DELETE},
        "proxmoxToken: is missing",
        "pulumi config set --secret proxmoxToken",
    ),
    bad(
        "proxmox-token-not-exported",
        {},
        "proxmoxToken: is read from PROXMOX_TOKEN",
        "export PROXMOX_TOKEN=",
        unset="PROXMOX_TOKEN",
    ),
    bad("proxmox-token-malformed", {"proxmoxToken": "env:GIT_TOKEN"}, "proxmoxToken: is not a Proxmox API token"),
    bad("proxmox-token-plain", {"proxmoxToken": TOKEN}, "proxmoxToken: is plain text in the stack file"),
    bad("csi-token-missing", {"csiToken": DELETE}, "csiToken: is missing", "storage.csi"),
    bad("git-token-missing", {"gitToken": DELETE}, "gitToken: is missing: sealing.publish is push"),
    bad("admin-token-missing", {"cluster.proxmox.create_csi_credentials": True}, "proxmoxAdminToken: is missing"),
    bad("pull-secret-missing", {"cluster.namespaces": {"web": {"pull_secret": True}}}, "pullSecret: is missing"),
    bad("mesh-without-authority", {"cluster.mesh.enabled": True}, "ciliumCa: is missing: mesh.enabled is true"),
    bad(
        "sealing-certificate-alone",
        {"sealingCertificate": "env:SEALING_CERTIFICATE"},
        "sealingKey: is missing although",
    ),
]

PAIR = [
    bad("name-of-other-cluster", {"cluster.name": "apps"}, "also the name of the cluster in Pulumi.apps.yaml"),
    bad("cilium-id-of-other", {"cluster.cilium.id": 2}, "2 is used by infra and by apps (Pulumi.apps.yaml)"),
    bad(
        "cilium-id-of-other-seen-from-apps",
        {"cluster.cilium.id": 1},
        "by apps and by infra (Pulumi.infra.yaml)",
        stack="apps",
    ),
    bad("vmid-of-other", {"cluster.nodes.infra-w-1.vmid": 1221}, "VM id 1221 is used by infra-w-1 and by apps-w-1"),
    bad("mac-of-other", {"cluster.nodes.infra-w-1.mac": "BC:24:11:19:0C:15"}, "is used by infra-w-1 and by apps-w-1"),
    bad(
        "node-name-of-other",
        {
            "cluster.nodes.apps-w-1": {
                "role": "worker",
                "host": "atlas",
                "address": "10.25.11.29",
                "vmid": 1129,
                "mac": "BC:24:11:19:0B:1D",
                "cores": 8,
                "memory": 16384,
                "disk": 100,
            }
        },
        "apps-w-1 is also a node of apps (Pulumi.apps.yaml)",
    ),
    bad("pods-of-other", {"cluster.network.pods": "10.246.0.0/16"}, "overlaps the pod network 10.246.0.0/16 of apps"),
    bad(
        "services-of-other",
        {"cluster.network.services": "10.247.0.0/16"},
        "overlaps the service network 10.247.0.0/16 of apps",
    ),
    bad("pods-on-nodes-of-other", {"cluster.network.pods": "10.25.12.0/20"}, "cluster.network.pods"),
    bad(
        "subnet-of-other", {"cluster.network.subnet": "10.25.0.0/16"}, "overlaps the node network 10.25.12.0/24 of apps"
    ),
    bad(
        "vip-of-other",
        {"cluster.network.vip": "10.25.12.10"},
        "10.25.12.10 is used by the VIP and by the VIP (Pulumi.apps",
    ),
    bad(
        "pool-of-other",
        {"cluster.lb_pools.spare": {"cidr": "10.25.12.120/29"}},
        "by the pool spare and by the pool gateway (",
    ),
    bad("encryption-differs", {"cluster.cilium.encryption": "wireguard"}, "is wireguard in infra and none in apps"),
    bad(
        "datapath-differs",
        {"cluster.cilium.values": {"routingMode": "tunnel"}},
        "is tunnel in infra and native in apps",
    ),
    bad("mesh-size-differs", {"cluster.mesh.max_connected_clusters": 511}, "is 511 in infra and 255 in apps"),
    bad("kubernetes-far-apart", {"cluster.versions.kubernetes": "1.34.1"}, "1.34.1 in infra and 1.36.4 in apps"),
    bad(
        "native-routing-misses-mesh",
        MESHED | {"cluster.cilium.native_routing_cidr": "10.244.0.0/16"},
        "does not cover the pod network 10.246.0.0/16 of apps",
        "write 10.244.0.0/14",
        other=MESHED,
    ),
    bad("mesh-without-address", MESHED | {"cluster.lb_addresses": {}}, "lb_addresses.mesh: is missing", other=MESHED),
    bad(
        "mesh-with-unknown",
        MESHED | {"cluster.mesh.clusters": ["app"]},
        "describes a cluster app",
        "did you mean apps?",
    ),
    bad(
        "mesh-off-at-the-other-end",
        MESHED | {"cluster.mesh.clusters": ["apps"]},
        "the mesh of apps is off in Pulumi.apps.yaml",
    ),
    bad(
        "provider-stack-unknown",
        {"cluster.storage.provider_stack": "store"},
        "there is no Pulumi.store.yaml",
        "name infra",
        stack="apps",
    ),
    bad(
        "provider-stack-provides-nothing",
        {"cluster.storage.provider_stack": "infra"},
        "Pulumi.infra.yaml has storage.role: consumer",
        stack="apps",
        other={"cluster.storage.role": "consumer"},
    ),
    bad("provider-with-a-provider", {"cluster.storage.provider_stack": "apps"}, "although storage.role is provider"),
    bad(
        "other-stack-unreadable",
        {},
        "Pulumi.apps.yaml: cannot be compared",
        "pulumi preview -s apps",
        other={"cluster.nme": 1},
    ),
]

BAD_CONFIGS: list[Bad] = [*SHAPE, *ADDRESSES, *MACHINES, *VERSIONS, *SOFTWARE, *SECRETS, *PAIR]
