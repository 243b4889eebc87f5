module groundwork.lab/toolchain/plugins

go 1.26

require (
	github.com/bpg/terraform-provider-proxmox v0.112.0
	github.com/hashicorp/terraform-provider-tls v1.2.1-0.20260819085117-d044ca7c6f52
	github.com/hashicorp/terraform-provider-tls/shim v0.0.0
	github.com/pulumi/pulumi-go-provider v1.4.0
	github.com/pulumi/pulumi-terraform-bridge/v3 v3.137.0
	github.com/pulumi/pulumi/pkg/v3 v3.259.0
	github.com/pulumi/pulumi/sdk/v3 v3.259.0
	github.com/siderolabs/talos/pkg/machinery v1.13.9
	github.com/siderolabs/terraform-provider-talos v0.8.0
)

// The bridge asks for Pulumi's fork of the plugin SDK.
replace github.com/hashicorp/terraform-plugin-sdk/v2 => github.com/pulumi/terraform-plugin-sdk/v2 v2.0.0-20260318212141-5525259d096b

// Its provider is in internal/; a module below its path may hand it out.
replace github.com/hashicorp/terraform-provider-tls/shim => ./tls

// The toolchain's recipe puts a copy there that fits the current Talos machinery.
replace github.com/siderolabs/terraform-provider-talos => ./upstream/terraform-provider-talos
