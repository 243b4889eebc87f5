package main

import (
	"context"
	"os"
	"path/filepath"

	bridge "github.com/pulumi/pulumi-terraform-bridge/v3/pkg/pf/tfbridge"
	"github.com/pulumi/pulumi-terraform-bridge/v3/pkg/pf/tfgen"
	"github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfbridge"
)

// A bridged plugin: an upstream Terraform provider that answers as a Pulumi plugin.
type bridged struct {
	name string
	info func(metadata []byte) tfbridge.ProviderInfo
	// muxed is true for a provider that is written with both of Terraform's plugin kits.
	muxed bool
}

// beside reads a file that `generate` wrote into the directory of the binary.
func (plugin bridged) beside(file string) []byte {
	binary, err := os.Executable()
	if err != nil {
		fail(err)
	}
	content, err := os.ReadFile(filepath.Join(filepath.Dir(binary), "schema", plugin.name, file))
	if err != nil {
		fail(err)
	}
	return content
}

func (plugin bridged) serve() {
	schema, info := plugin.beside("schema.json"), plugin.info(plugin.beside("bridge-metadata.json"))
	if plugin.muxed {
		bridge.MainWithMuxer(context.Background(), plugin.name, info, schema)
		return
	}
	bridge.Main(context.Background(), plugin.name, info, bridge.ProviderMetadata{PackageSchema: schema})
}

func (plugin bridged) generate() {
	info := plugin.info([]byte("{}"))
	if plugin.muxed {
		tfgen.MainWithMuxer(plugin.name, info)
		return
	}
	tfgen.Main(plugin.name, info)
}
