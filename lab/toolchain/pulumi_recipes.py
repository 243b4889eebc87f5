"""Pulumi and its plugins, as they are built from Go modules."""

from lab.toolchain.recipe import Build, Copy, ModuleFile, Patch, Program, Recipe

PULUMI = "3.259.0"
SDK = "github.com/pulumi/pulumi/sdk/v3"
SDK_SUM = "h1:mJP9tXF9oxcfwidBgteXkUUchIz2L59SbGS5byZBo1w="


PULUMI_RECIPE = Recipe(
    name="pulumi",
    version=PULUMI,
    programs=(Program(name="pulumi", version=PULUMI, ask=("version",)),),
    companions=(
        Program(name="pulumi-language-python", version="3.79.0", ask=()),
        Program(name="pulumi-language-python-exec", version=PULUMI, ask=()),
        Program(name="pulumi-resource-pulumi-python", version=PULUMI, ask=()),
    ),
    builds=(
        Build(
            wrapper="pulumi",
            package="github.com/pulumi/pulumi/pkg/v3/cmd/pulumi",
            output="pulumi",
            symbols={"github.com/pulumi/pulumi/sdk/v3/go/common/version.Version": f"v{PULUMI}"},
        ),
        Build(
            wrapper="language",
            package="github.com/pulumi/pulumi/sdk/v3/python/cmd/pulumi-language-python",
            output="pulumi-language-python",
        ),
    ),
    files=tuple(
        ModuleFile(module=SDK, version=f"v{PULUMI}", sum=SDK_SUM, path=path)
        for path in ("python/cmd/pulumi-language-python-exec", "python/dist/pulumi-resource-pulumi-python")
    ),
    first=True,
)

_TALOS_COPY = Copy(
    module="github.com/siderolabs/terraform-provider-talos",
    version="v0.8.0",
    sum="h1:NaxfxmaUY2pO2jMcc0J72xI5acBaMA0B/eNjbbCIHtM=",
    target="upstream/terraform-provider-talos",
    # Talos's library dropped the option; persisting is what it always does now.
    patches=(Patch(file="pkg/talos/util.go", old="generate.WithPersist(true),", new=""),),
)

_BRIDGED = ("proxmoxve", "talos", "tls")

PLUGINS = Recipe(
    name="plugins",
    version="1",
    programs=(
        Program(
            name="pulumi-resource-proxmoxve",
            version="8.6.0",
            origin="bridged from bpg/terraform-provider-proxmox v0.112.0",
            plugin="proxmoxve",
        ),
        Program(
            name="pulumi-resource-talos",
            version="0.8.1",
            origin="bridged from siderolabs/terraform-provider-talos v0.8.0 with Talos machinery v1.13.9",
            plugin="talos",
        ),
        Program(
            name="pulumi-resource-tls",
            version="5.6.2",
            origin="bridged from hashicorp/terraform-provider-tls v1.2.1-0.20260819085117-d044ca7c6f52",
            plugin="tls",
        ),
        Program(
            name="pulumi-resource-command",
            version="1.2.1",
            ask=(),
            origin="stand-in for local.Command with pulumi-go-provider v1.4.0",
            plugin="command",
        ),
        Program(name="talos-config-check", version="1.13.9", ask=()),
    ),
    builds=(Build(wrapper="plugins", output="plugins", copies=(_TALOS_COPY,)),),
    links={
        **{f"pulumi-resource-{name}": "plugins" for name in (*_BRIDGED, "command")},
        **{f"pulumi-tfgen-{name}": "plugins" for name in _BRIDGED},
        "talos-config-check": "plugins",
    },
    afterwards=tuple(
        (f"pulumi-tfgen-{name}", "schema", "--skip-docs", "--skip-examples", "--out", f"schema/{name}")
        for name in _BRIDGED
    ),
    first=True,
)

_PROVIDER = "github.com/pulumi/pulumi-kubernetes/provider/v4"
_PROVIDER_SDK = "github.com/pulumi/pulumi-kubernetes/sdk/v4"

KUBERNETES_PROVIDER = Recipe(
    name="kubernetes",
    version="4.25.0",
    programs=(Program(name="pulumi-resource-kubernetes", version="4.25.0", ask=(), plugin="kubernetes"),),
    builds=(
        Build(
            copies=(
                Copy(
                    module=_PROVIDER,
                    version="v4.0.0-20260115033456-f47bc2d6f199",
                    sum="h1:j2bphCf7c2YhnBrhwht2f3TNRRgcMImltUlAgzxr9H4=",
                    target=".",
                    patches=(
                        Patch(file="go.mod", old=f"replace {_PROVIDER_SDK} => ../sdk\n", new=""),
                        Patch(file="go.mod", old=f"{_PROVIDER_SDK} v4.24.0", new=f"{_PROVIDER_SDK} v4.25.0"),
                    ),
                ),
            ),
            sums=(
                f"{_PROVIDER_SDK} v4.25.0 h1:N1qitmrGomEaCPsblqJHaw8Re0cqqox5V+kHsi4EEtk=\n"
                f"{_PROVIDER_SDK} v4.25.0/go.mod h1:ACBJF6+nzUqDeRK+p2OrvykunyeHfvtbyELc6PB38fk=\n"
            ),
            generate=("generate", "-C", "cmd/pulumi-resource-kubernetes", "./main.go"),
            environment={"VERSION": "4.25.0"},
            package="./cmd/pulumi-resource-kubernetes",
            output="pulumi-resource-kubernetes",
            symbols={f"{_PROVIDER}/pkg/version.Version": "4.25.0"},
        ),
    ),
    first=True,
)
