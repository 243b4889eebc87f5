"""The committed file that Talos applies when Cilium comes inline: `python -m components.cilium_manifest STACK`.

CRDs stand first, because the operator looks for them once; no Secret is let in, because machine configurations show.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pulumi
import yaml

from components import cilium_values
from components.cilium_release import crd_urls
from components.questions import CILIUM_NAMESPACE
from config import ClusterConfig
from config.load import PROJECT, with_mesh_routing
from config.stack_files import cluster_data, peers
from config.structure import parse

KEY = "groundwork:cluster"


def manifest_file(config: ClusterConfig) -> Path:
    return PROJECT / "manifests" / f"cilium-{config.name}.yaml"


def stamp(config: ClusterConfig, body: str) -> str:
    """Says what the file was made from and what it held then."""
    source = [config.versions.cilium, cilium_values.values(config), crd_urls(config)]
    made_from = hashlib.sha256(json.dumps(source, sort_keys=True).encode()).hexdigest()
    return f"# made-from {made_from} contents {hashlib.sha256(body.encode()).hexdigest()}\n"


def secrets_in(body: str) -> list[str]:
    documents: list[Any] = [each for each in yaml.safe_load_all(body) if each]
    return [each["metadata"]["name"] for each in documents if each["kind"] == "Secret"]


def manifests(config: ClusterConfig) -> list[dict[str, str]]:
    """What Talos is to apply; RunError for a file that is missing, stale, edited or holds a Secret."""
    if config.cilium.install != "inline":
        return []
    file = manifest_file(config)
    shown = file.relative_to(PROJECT) if file.is_relative_to(PROJECT) else file.name
    remedy = f"run `make cilium-manifest STACK={config.name}` and commit it"
    if not file.exists():
        raise pulumi.RunError(f"{shown} is missing; {remedy}")
    first, _, body = file.read_text(encoding="utf-8").partition("\n")
    if f"{first}\n" != stamp(config, body):
        raise pulumi.RunError(f"{shown} was not made from this version, these values and CRDs; {remedy}")
    if secrets_in(body):
        raise pulumi.RunError(
            f"{shown} holds the Secret {secrets_in(body)[0]}; take what makes it out of cilium.values"
        )
    return [{"name": "cilium", "contents": body}]


def render(config: ClusterConfig) -> str:
    """CRDs as they are published, then the chart as Helm renders it."""
    helm = shutil.which("helm")
    if helm is None:
        raise SystemExit("helm is not on the PATH; install Helm 3 or 4 and run this again")
    definitions = [
        httpx.get(url, follow_redirects=True, timeout=60).raise_for_status().text for url in crd_urls(config)
    ]
    command = [helm, "template", "cilium", "cilium", "--repo", config.cilium.repository]
    command += ["--version", config.versions.cilium, "--namespace", CILIUM_NAMESPACE, "--values", "-"]
    values = yaml.safe_dump(cilium_values.values(config))
    chart = subprocess.run(command, input=values, capture_output=True, text=True, check=False)
    if chart.returncode:
        raise SystemExit(chart.stderr)
    return "\n---\n".join([*definitions, chart.stdout])


def write(config: ClusterConfig) -> Path:
    body = render(config)
    if secrets_in(body):
        raise SystemExit(f"these values make the Secret {secrets_in(body)[0]}; it would be readable in the repository")
    file = manifest_file(config)
    file.parent.mkdir(exist_ok=True)
    file.write_text(stamp(config, body) + body, encoding="utf-8")
    return file


def main(stack: str) -> None:
    parsed = parse(cluster_data(PROJECT, stack, KEY))
    if parsed.problems:
        raise SystemExit(str(parsed.problems[0]))
    others, _ = peers(PROJECT, stack, KEY)
    config = with_mesh_routing(parsed.cluster, others)
    write(config)


if __name__ == "__main__":
    main(sys.argv[1])
