"""Brings sealed files to the Git ref Flux will read, and nothing else with them."""

from __future__ import annotations

import shlex

# The token is read from the environment by Git's credential helper: it is in no argument and in no file.
CREDENTIAL_HELPER = '!f() { echo username=git; echo "password=$GROUNDWORK_GIT_TOKEN"; }; f'

MESSAGE = "Seal secrets for the current key"


def publish_script(files: list[str], branch: str, *, push: bool) -> str:
    """A shell script that commits the given files if they changed, and pushes where asked."""
    paths = " ".join(shlex.quote(path) for path in files)
    lines = [
        "set -eu",
        f"git add -- {paths}",
        f"git diff --cached --quiet -- {paths} || git commit --quiet --message '{MESSAGE}' -- {paths}",
    ]
    if push:
        helper = shlex.quote(f"credential.helper={CREDENTIAL_HELPER}")
        remote = shlex.quote(branch)
        lines += [
            f"git -c credential.helper= -c {helper} pull --quiet --rebase --autostash origin {remote}",
            f"git -c credential.helper= -c {helper} push --quiet origin HEAD:{remote}",
        ]
    return "\n".join(lines) + "\n"
