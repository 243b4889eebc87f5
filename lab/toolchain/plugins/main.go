// One binary for the Pulumi plugins of the lab, called by the name it is linked to.
//
// Linked together they share their compiled packages. `pulumi-resource-X` serves a plugin, `pulumi-tfgen-X` writes
// its schema, and `talos-config-check` asks Talos's own library about a machine config.
package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

var programs = map[string]func(){
	"pulumi-resource-command":   serveCommand,
	"pulumi-resource-proxmoxve": func() { proxmoxve.serve() },
	"pulumi-resource-talos":     func() { talos.serve() },
	"pulumi-resource-tls":       func() { tls.serve() },
	"pulumi-tfgen-proxmoxve":    func() { proxmoxve.generate() },
	"pulumi-tfgen-talos":        func() { talos.generate() },
	"pulumi-tfgen-tls":          func() { tls.generate() },
	"talos-config-check":        checkTalosConfig,
}

func main() {
	name := filepath.Base(os.Args[0])
	program, known := programs[name]
	if !known {
		names := strings.Join(slices.Sorted(maps.Keys(programs)), ", ")
		fail(fmt.Errorf("no program is called %q; link this binary to one of: %s", name, names))
	}
	program()
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
