package main

import (
	"context"
	"strings"

	"github.com/bpg/terraform-provider-proxmox/fwprovider"
	"github.com/bpg/terraform-provider-proxmox/proxmoxtf/provider"
	bridge "github.com/pulumi/pulumi-terraform-bridge/v3/pkg/pf/tfbridge"
	"github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfbridge"
	"github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfbridge/tokens"
	shimv2 "github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfshim/sdk-v2"
)

var proxmoxve = bridged{name: "proxmoxve", info: proxmoxveInfo, muxed: true}

func proxmoxveInfo(metadata []byte) tfbridge.ProviderInfo {
	sdk, framework := shimv2.NewProvider(provider.ProxmoxVirtualEnvironment()), fwprovider.New("0.112.0")()
	info := tfbridge.ProviderInfo{
		P:                bridge.MuxShimWithPF(context.Background(), sdk, framework),
		Name:             "proxmoxve",
		Version:          "8.6.0",
		ResourcePrefix:   "proxmox",
		GitHubOrg:        "bpg",
		GitHubHost:       "github.com",
		Repository:       "https://github.com/muhlba91/pulumi-proxmoxve",
		UpstreamRepoPath: "-",
		MetadataInfo:     tfbridge.NewProviderMetadata(metadata),
		// Their ids are integers, which the bridge cannot carry; nothing here uses them.
		IgnoreMappings: []string{
			"proxmox_vm", "proxmox_virtual_environment_vm2",
			"proxmox_cloned_vm", "proxmox_virtual_environment_cloned_vm",
		},
	}
	info.MustComputeTokens(tokens.Strategy{
		Resource: func(name string, resource *tfbridge.ResourceInfo) error {
			module, member := proxmoxveToken(name)
			resource.Tok = tfbridge.MakeResource("proxmoxve", module, member)
			return nil
		},
		DataSource: func(name string, source *tfbridge.DataSourceInfo) error {
			module, member := proxmoxveToken(name)
			source.Tok = tfbridge.MakeDataSource("proxmoxve", module, "get"+member)
			return nil
		},
	})
	return info
}

// proxmoxveToken splits a Terraform name into a module path and a member: the last word is the member.
func proxmoxveToken(name string) (module, member string) {
	suffix := ""
	rest, legacy := strings.CutPrefix(name, "proxmox_virtual_environment_")
	if legacy {
		suffix = "Legacy"
	} else {
		rest = strings.TrimPrefix(name, "proxmox_")
	}
	words := strings.Split(rest, "_")
	last := words[len(words)-1]
	module = strings.Join(words[:len(words)-1], "/")
	if module == "" {
		module = "index"
	}
	return module, strings.ToUpper(last[:1]) + last[1:] + suffix
}
