package main

import (
	"fmt"
	"io"
	"os"

	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
)

// A machine that boots a disk image of a cloud platform (Proxmox: nocloud) and so needs no installation.
type cloud struct{}

func (cloud) String() string        { return "cloud" }
func (cloud) RequiresInstall() bool { return false }
func (cloud) InContainer() bool     { return false }

// checkTalosConfig exits with 0 when Talos would accept the machine config on standard input.
func checkTalosConfig() {
	source, err := io.ReadAll(os.Stdin)
	if err != nil {
		fail(err)
	}
	config, err := configloader.NewFromBytes(source)
	if err != nil {
		fail(err)
	}
	warnings, err := config.Validate(cloud{})
	for _, warning := range warnings {
		fmt.Fprintln(os.Stderr, "warning:", warning)
	}
	if err != nil {
		fail(err)
	}
}
