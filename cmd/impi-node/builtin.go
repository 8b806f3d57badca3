package main

import (
	"fmt"
	"os"

	"github.com/openimpi/impi/plugins/sdk"
	"github.com/openimpi/impi/transports"
	"github.com/openimpi/impi/transports/shm"
	"github.com/openimpi/impi/transports/tcp"
	"github.com/openimpi/impi/transports/unix"
)

// builtins are the transports that need no plugin file, best first.
var builtins = []struct {
	name string
	make func() transports.Transport
}{
	{"shm", func() transports.Transport { return shm.New() }},
	{"unix", func() transports.Transport { return unix.New() }},
	{"tcp", func() transports.Transport { return tcp.New() }},
}

func builtinNames() []string {
	names := make([]string, len(builtins))
	for i, b := range builtins {
		names[i] = b.name
	}
	return names
}

// serveBuiltin is the process of a built-in transport. It does not return.
func serveBuiltin(name string) {
	for _, b := range builtins {
		if b.name == name {
			sdk.Serve(sdk.Options{Transport: b.make()})
		}
	}
	fmt.Fprintf(os.Stderr, "impi-node has no transport %q built in\n", name)
	os.Exit(statusUsage)
}
