"""Which resource types a machine knows, and how `talosctl get` finds and prints them."""

from __future__ import annotations

from dataclasses import dataclass

from lab.talos.store import Spec
from talos_api import definitions_pb2 as pb
from talos_api import resources as kinds
from talos_api.resources import Kind

NAMESPACE = Kind("meta", "Namespaces.meta.cosi.dev")
SENSITIVE = {kinds.MACHINE_CONFIG, kinds.OPERATOR_SPEC, kinds.KUBELET_SPEC}


@dataclass(frozen=True)
class Definition:
    kind: Kind
    aliases: tuple[str, ...] = ()
    columns: tuple[tuple[str, str], ...] = ()

    @property
    def display(self) -> str:
        plural = self.kind.type.split(".")[0]
        return plural[:-2] if plural.endswith(("sses", "uses")) else plural[:-1]

    def spec(self) -> Spec:
        aliases = [*self.aliases, self.display.lower(), *_initials(self.kind.type)]
        everything = [*_qualified(self.kind.type), *aliases]
        sensitive = self.kind in SENSITIVE
        columns = [pb.ResourceDefinitionSpec.PrintColumn(name=name, json_path=path) for name, path in self.columns]
        return Spec(
            yaml={
                "type": self.kind.type,
                "displayType": self.display,
                "defaultNamespace": self.kind.namespace,
                "aliases": aliases,
                "allAliases": everything,
                "printColumns": [{"name": name, "jsonPath": path} for name, path in self.columns],
                **({"sensitivity": "sensitive"} if sensitive else {}),
            },
            proto=pb.ResourceDefinitionSpec(
                resource_type=self.kind.type,
                display_type=self.display,
                default_namespace=self.kind.namespace,
                aliases=aliases,
                all_aliases=everything,
                print_columns=columns,
                sensitivity=int(sensitive),
            ),
        )


def _initials(type: str) -> list[str]:
    letters = "".join(letter for letter in type.split(".", maxsplit=1)[0] if letter.isupper()).lower()
    if len(letters) < 2:
        return []
    return [letters] if letters.endswith("s") else [letters, letters + "s"]


def _qualified(type: str) -> list[str]:
    name, *suffix = type.lower().split(".")
    return [name, *(".".join([name, *suffix[:count]]) for count in range(1, len(suffix)))]


DEFINITIONS = [
    Definition(kinds.RESOURCE_DEFINITION, ("api-resources",), (("Aliases", "{.aliases[:]}"),)),
    Definition(NAMESPACE, ("ns",)),
    Definition(
        kinds.ADDRESS_STATUS, ("address", "addresses"), (("Address", "{.address}"), ("Link", "{.linkName}"))
    ),
    Definition(kinds.BOOTSTRAP_MANIFESTS_CONFIG),
    Definition(kinds.DIAGNOSTIC, (), (("Message", "{.message}"),)),
    Definition(kinds.DISK, (), (("Size", "{.pretty_size}"), ("Transport", "{.transport}"), ("Model", "{.model}"))),
    Definition(kinds.HOSTNAME_STATUS, ("hostname",), (("Hostname", "{.hostname}"), ("Domainname", "{.domainname}"))),
    Definition(kinds.KUBELET_SPEC),
    Definition(
        kinds.LINK_STATUS,
        ("link", "links"),
        (("Alias", "{.alias}"), ("Type", "{.type}"), ("Hw Addr", "{.hardwareAddr}"), ("Oper", "{.operationalState}")),
    ),
    Definition(kinds.MACHINE_CONFIG),
    Definition(kinds.MACHINE_STATUS, (), (("Stage", "{.stage}"), ("Ready", "{.status.ready}"))),
    Definition(
        kinds.MEMBER,
        (),
        (
            ("Hostname", "{.hostname}"),
            ("Machine Type", "{.machineType}"),
            ("OS", "{.operatingSystem}"),
            ("Addresses", "{.addresses}"),
        ),
    ),
    Definition(
        kinds.MOUNT_STATUS, ("mounts",), (("Source", "{.source}"), ("Target", "{.target}"))
    ),
    Definition(kinds.NODE_ADDRESS, (), (("Addresses", "{.addresses}"), ("SortAlgorithm", "{.sortAlgorithm}"))),
    Definition(kinds.NODENAME, (), (("Nodename", "{.nodename}"),)),
    Definition(kinds.OPERATOR_SPEC),
    Definition(
        kinds.SERVICE,
        ("svc",),
        (("Running", "{.running}"), ("Healthy", "{.healthy}"), ("Health Unknown", "{.unknown}")),
    ),
    Definition(kinds.STATIC_POD_STATUS, ("podstatus",), (("Ready", '{.conditions[?(@.type=="Ready")].status}'),)),
    Definition(kinds.TIME_STATUS, (), (("Synced", "{.synced}"),)),
    Definition(
        kinds.VOLUME_STATUS,
        (),
        (("Type", "{.type}"), ("Phase", "{.phase}"), ("Location", "{.location}"), ("Size", "{.prettySize}")),
    ),
]  # fmt: skip
TYPES = {definition.kind.type for definition in DEFINITIONS}
NAMESPACES = sorted({definition.kind.namespace for definition in DEFINITIONS})


def definition_specs() -> dict[str, Spec]:
    return {definition.kind.type.lower(): definition.spec() for definition in DEFINITIONS}


def namespace_specs() -> dict[str, Spec]:
    return {name: Spec(yaml={"description": ""}, proto=pb.NamespaceSpec()) for name in NAMESPACES}
