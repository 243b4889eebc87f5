// Package shim hands out the TLS provider, which its own module keeps internal.
package shim

import "github.com/hashicorp/terraform-provider-tls/internal/provider"

// New makes a TLS provider.
var New = provider.New
