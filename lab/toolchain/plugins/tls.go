package main

import (
	upstream "github.com/hashicorp/terraform-provider-tls/shim"
	bridge "github.com/pulumi/pulumi-terraform-bridge/v3/pkg/pf/tfbridge"
	"github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfbridge"
	"github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfbridge/tokens"
)

var tls = bridged{name: "tls", info: tlsInfo}

func tlsInfo(metadata []byte) tfbridge.ProviderInfo {
	info := tfbridge.ProviderInfo{
		P:                bridge.ShimProvider(upstream.New()),
		Name:             "tls",
		Version:          "5.6.2",
		GitHubOrg:        "hashicorp",
		GitHubHost:       "github.com",
		Repository:       "https://github.com/pulumi/pulumi-tls",
		UpstreamRepoPath: "-",
		MetadataInfo:     tfbridge.NewProviderMetadata(metadata),
	}
	info.MustComputeTokens(tokens.SingleModule("tls_", "index", tokens.MakeStandard("tls")))
	return info
}
