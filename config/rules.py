"""Every rule, and what runs them all even when parts of the stack file could not be read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from . import chart_keys, charts, deadlines, machines, mesh, networks, pair, patches, software, versions
from .errors import Problem
from .mesh import Peers
from .model import ClusterConfig
from .structure import Parsed

Rule = Callable[[ClusterConfig], Iterable[Problem]]
PairRule = Callable[[ClusterConfig, str, ClusterConfig], Iterable[Problem]]
ProjectRule = Callable[[ClusterConfig, Peers], Iterable[Problem]]

RULES: tuple[Rule, ...] = (
    versions.talos_is_supported,
    versions.contract_is_not_ahead,
    versions.kubernetes_is_supported,
    versions.gateway_api_fits_cilium,
    networks.addresses_stand_in_the_subnet,
    networks.addresses_are_of_hosts,
    networks.addresses_are_used_once,
    networks.networks_are_disjoint,
    networks.networks_are_large_enough,
    networks.static_addresses_are_in_pools,
    networks.static_addresses_are_used_once,
    networks.native_routing_covers_the_pods,
    networks.native_routing_spares_the_nodes,
    machines.vm_ids_are_unique,
    machines.macs_are_unique,
    machines.hosts_exist,
    machines.control_planes_are_strong_enough,
    machines.disks_differ_in_size,
    charts.charts_have_names_of_their_own,
    charts.charts_need_known_charts,
    charts.charts_do_not_wait_for_each_other,
    charts.charts_have_a_source,
    charts.dns_is_somewhere,
    charts.crds_are_pinned,
    chart_keys.values_are_keys_of_the_chart,
    charts.namespaces_are_our_own,
    patches.dns_reaches_the_host,
    patches.patches_keep_the_network_static,
    patches.patches_are_known_kinds,
    patches.guest_agent_is_there,
    software.certificates_are_checked_one_way,
    software.bgp_has_peers,
    software.values_have_one_source,
    software.mesh_has_an_address,
    software.storage_is_provided_by_providers,
    software.storage_has_a_role,
    deadlines.timeouts_are_in_order,
    deadlines.deadlines_outlast_an_attempt,
    deadlines.deadlines_name_gates,
    software.flux_reads_what_is_sealed,
)

RULES_ON_EVERY_NODE: tuple[Rule, ...] = (
    machines.control_planes_are_odd,
    machines.control_planes_are_apart,
    machines.something_can_be_scheduled,
    machines.bootstrap_node_is_a_control_plane,
    machines.named_nodes_exist,
)
"""True only of the whole set of nodes."""

PAIR_RULES: tuple[PairRule, ...] = (
    pair.names_differ,
    pair.cilium_ids_differ,
    pair.nodes_differ,
    pair.machines_differ,
    pair.networks_differ,
    pair.addresses_differ,
    pair.datapaths_agree,
    pair.versions_are_close,
)

PROJECT_RULES: tuple[ProjectRule, ...] = (
    mesh.mesh_members_are_ready,
    mesh.mesh_is_not_alone,
    mesh.native_routing_covers_the_mesh,
    mesh.storage_comes_from_a_provider,
)


def check(parsed: Parsed, peers: Peers) -> Iterator[Problem]:
    cluster = parsed.cluster
    for rule in RULES + (RULES_ON_EVERY_NODE if parsed.every_node else ()):
        yield from readable(rule(cluster), cluster)
    for project_rule in PROJECT_RULES:
        yield from readable(project_rule(cluster, peers), cluster)
    for stack, peer in peers.items():
        for pair_rule in PAIR_RULES:
            yield from readable(pair_rule(cluster, stack, peer), cluster)


def readable(problems: Iterable[Problem], cluster: ClusterConfig) -> Iterator[Problem]:
    """Ends a rule quietly where it comes to a section that was already reported as unreadable."""
    try:
        yield from problems
    except AttributeError as error:
        if error.obj is not cluster or error.name not in ClusterConfig.model_fields:
            raise
