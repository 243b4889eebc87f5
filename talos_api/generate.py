"""Generate the Python code of the .proto files beside this module: `python -m talos_api.generate [directory]`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parent


def generate(target: Path) -> None:
    """Write messages, their stubs and the grpclib services below the target directory."""
    protos = sorted(f"{PACKAGE.name}/{proto.name}" for proto in PACKAGE.glob("*.proto"))
    plugins = Path(sys.executable).parent
    command = [
        sys.executable,
        "-m",
        "grpc_tools.protoc",
        f"--proto_path={PACKAGE.parent}",
        f"--plugin=protoc-gen-mypy={plugins / 'protoc-gen-mypy'}",
        f"--plugin=protoc-gen-grpclib_python={plugins / 'protoc-gen-grpclib_python'}",
        f"--python_out={target}",
        f"--mypy_out={target}",
        f"--grpclib_python_out={target}",
    ]
    subprocess.run([*command, *protos], check=True)


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else PACKAGE.parent)
