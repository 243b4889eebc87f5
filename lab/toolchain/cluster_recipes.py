"""Kubernetes itself and what runs in or speaks to the cluster, all built from one Go module to share its packages."""

from collections.abc import Mapping
from dataclasses import replace

from lab.toolchain.recipe import Build, Copy, Program, Recipe

KUBERNETES = "1.36.4"

_FLUX_OPERATOR = Copy(
    module="github.com/controlplaneio-fluxcd/flux-operator",
    version="v0.58.1",
    sum="h1:ME/p3jGf5h9bNmQ5dhQBSjvj0G+7NTI1k3At+pCscis=",
    target="upstream/flux-operator",
    # It embeds the pages of its web UI, which another toolchain makes; nothing here opens them.
    added={"web/dist/index.html": "<!doctype html><title>Flux Operator</title>\n"},
)


def _kubernetes_version() -> dict[str, str]:
    major, minor, _ = KUBERNETES.split(".")
    facts = {"gitVersion": f"v{KUBERNETES}", "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    return {f"{package}.{name}": value for package in packages for name, value in facts.items()}


def _build(package: str, output: str, symbols: Mapping[str, str]) -> Build:
    return Build(wrapper="cluster", package=package, output=output, symbols=symbols, copies=(_FLUX_OPERATOR,))


def _single(program: Program, package: str, symbols: Mapping[str, str] | None = None) -> Recipe:
    """A recipe of one program."""
    build = _build(package, program.name, symbols or {})
    return Recipe(name=program.name, version=program.version, programs=(program,), builds=(build,))


_CONTROL_PLANE_NAMES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")

CONTROL_PLANE = Recipe(
    name="controlplane",
    version=KUBERNETES,
    programs=(
        Program(name="etcd", version="3.6.16"),
        Program(name="kube-apiserver", version=KUBERNETES),
        Program(name="kube-controller-manager", version=KUBERNETES),
        Program(name="kube-scheduler", version=KUBERNETES),
        Program(name="kubectl", version=KUBERNETES, ask=("version", "--client")),
    ),
    builds=(_build("./controlplane", "controlplane", _kubernetes_version()),),
    links=dict.fromkeys(_CONTROL_PLANE_NAMES, "controlplane"),
    first=True,
)

_CILIUM = "github.com/cilium/cilium"
_SEALED_SECRETS = "github.com/bitnami-labs/sealed-secrets/cmd"

_RUNTIME = "github.com/fluxcd/pkg/runtime"

_HELM_CONTROLLER = Program(
    name="helm-controller",
    version="1.6.4",
    ask=(),
    origin="built; Flux 2.9.4 pins 1.6.3, whose fork of Helm module mirrors lack",
)

# It uses a function that the runtime package got after the release from which the others' newer one branched off.
_HELM_CONTROLLER_BUILD = replace(
    _build("github.com/fluxcd/helm-controller", _HELM_CONTROLLER.name, {}),
    generate=("mod", "edit", f"-replace={_RUNTIME}={_RUNTIME}@v0.110.3"),
    sums=(
        f"{_RUNTIME} v0.110.3 h1:HbuLRPOVwacKCMx8wDnhTQEHC+R7aE7BGWwu+56alss=\n"
        f"{_RUNTIME} v0.110.3/go.mod h1:7RJnMhrKj8x/Um+VCln4D7bZbTFAWWgcoIXEDyI1vm4=\n"
    ),
)

OPERATORS: tuple[Recipe, ...] = (
    _single(
        Program(name="cilium-operator", version="1.20.1"),
        f"{_CILIUM}/operator",
        {f"{_CILIUM}/pkg/version.ciliumVersion": "1.20.1"},
    ),
    _single(
        Program(name="flux-operator", version="0.58.1", ask=(), origin="built without its web UI"),
        "github.com/controlplaneio-fluxcd/flux-operator/cmd/operator",
        {"main.VERSION": "v0.58.1"},
    ),
    _single(
        Program(name="source-controller", version="1.9.4", ask=(), origin="built with fluxcd/pkg/artifact v0.18.1"),
        "github.com/fluxcd/source-controller",
    ),
    _single(
        Program(name="kustomize-controller", version="1.9.4", ask=()),
        "github.com/fluxcd/kustomize-controller",
    ),
    Recipe(name="helm-controller", version="1.6.4", programs=(_HELM_CONTROLLER,), builds=(_HELM_CONTROLLER_BUILD,)),
    _single(
        Program(name="notification-controller", version="1.9.3", ask=()),
        "github.com/fluxcd/notification-controller",
    ),
    _single(
        Program(name="sealed-secrets-controller", version="0.36.6"),
        f"{_SEALED_SECRETS}/controller",
        {"main.VERSION": "0.36.6"},
    ),
    _single(Program(name="kubeseal", version="0.36.6"), f"{_SEALED_SECRETS}/kubeseal", {"main.VERSION": "0.36.6"}),
    _single(
        Program(name="talosctl", version="1.13.9", ask=("version", "--client", "--short")),
        "github.com/siderolabs/talos/cmd/talosctl",
    ),
)
