"""Fail when a preview plans to replace or delete what a cluster cannot lose.

`pulumi preview --json | python .ci/guard.py`
"""

from __future__ import annotations

import json
import sys
from typing import Any

IRREPLACEABLE = {
    "proxmoxve:index/vmLegacy:VmLegacy": "a virtual machine and the data on it",
    "talos:machine/bootstrap:Bootstrap": "the etcd bootstrap",
    "talos:machine/secrets:Secrets": "the cluster's own secrets",
    "tls:index/privateKey:PrivateKey": "the sealing key",
    "tls:index/selfSignedCert:SelfSignedCert": "the sealing certificate",
}
LOSSES = {"delete", "replace", "create-replacement", "delete-replaced"}


def losses(preview: dict[str, Any]) -> list[str]:
    """One line for each planned loss."""
    found = []
    for step in preview.get("steps", []):
        urn: str = step["urn"]
        *_, typed, name = urn.split("::")
        what = IRREPLACEABLE.get(typed.rsplit("$", maxsplit=1)[-1])
        if what and step["op"] in LOSSES:
            found.append(f"{name}: {step['op']} of {what}")
    return found


def main() -> int:
    found = losses(json.load(sys.stdin))
    for line in found:
        sys.stderr.write(f"{line}\n")
    if found:
        sys.stderr.write("Label the pull request `allow-loss` if this is what you want.\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
