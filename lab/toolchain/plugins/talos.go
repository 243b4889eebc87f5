package main

import (
	bridge "github.com/pulumi/pulumi-terraform-bridge/v3/pkg/pf/tfbridge"
	"github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfbridge"
	"github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfbridge/tokens"
	upstream "github.com/siderolabs/terraform-provider-talos/pkg/talos"
)

var talos = bridged{name: "talos", info: talosInfo}

func talosInfo(metadata []byte) tfbridge.ProviderInfo {
	info := tfbridge.ProviderInfo{
		P:                bridge.ShimProvider(upstream.New()),
		Name:             "talos",
		Version:          "0.8.1",
		GitHubOrg:        "siderolabs",
		GitHubHost:       "github.com",
		Repository:       "https://github.com/pulumiverse/pulumi-talos",
		UpstreamRepoPath: "-",
		MetadataInfo:     tfbridge.NewProviderMetadata(metadata),
	}
	modules := []string{"client", "cluster", "image_factory", "machine"}
	info.MustComputeTokens(tokens.KnownModules("talos_", "", modules, tokens.MakeStandard("talos")))
	return info
}
