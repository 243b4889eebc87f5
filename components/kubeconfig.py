"""Client files for people and providers, as text."""

from __future__ import annotations

from typing import Any

import yaml


def pointed_at(kubeconfig: str, address: str) -> str:
    """The same credentials for the API server on one address: during bootstrap the virtual address is not there yet."""
    document: dict[str, Any] = yaml.safe_load(kubeconfig)
    for cluster in document["clusters"]:
        cluster["cluster"]["server"] = f"https://{address}:6443"
    return yaml.safe_dump(document, sort_keys=False)


def talosconfig(name: str, endpoints: list[str], nodes: list[str], credentials: dict[str, str]) -> str:
    """A talosctl configuration with one context, the cluster's."""
    context = {
        "endpoints": endpoints,
        "nodes": nodes,
        "ca": credentials["ca"],
        "crt": credentials["certificate"],
        "key": credentials["key"],
    }
    return yaml.safe_dump({"context": name, "contexts": {name: context}}, sort_keys=False)
