package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/plugins/sdk"
	"github.com/openimpi/impi/transports"
	"github.com/openimpi/impi/transports/quic"
	"github.com/openimpi/impi/transports/shm"
	"github.com/openimpi/impi/transports/tcp"
	"github.com/openimpi/impi/transports/unix"
)

// builtin is a transport that needs no plugin file.
type builtin struct {
	name string
	make func() transports.Transport
}

// builtins are those that every job has, best first.
var builtins = []builtin{
	{"shm", func() transports.Transport { return shm.New() }},
	{"unix", func() transports.Transport { return unix.New() }},
	{"tcp", func() transports.Transport { return tcp.New() }},
}

// optional are those that a job has if its file has a block for them: they need
// settings.
var optional = []builtin{
	{"quic", func() transports.Transport { return quic.New() }},
}

// loadOptions are what config.Load must know of this program.
func loadOptions() config.Options {
	return config.Options{Builtins: names(builtins), Optional: names(optional)}
}

func names(list []builtin) []string {
	names := make([]string, len(list))
	for i, b := range list {
		names[i] = b.name
	}
	return names
}

// findBuiltin gives the transport of that name.
func findBuiltin(name string) (builtin, bool) {
	for _, b := range append(slices.Clone(builtins), optional...) {
		if b.name == name {
			return b, true
		}
	}
	return builtin{}, false
}

// serveBuiltin is the process of a built-in transport. It does not return.
func serveBuiltin(name string) {
	if b, ok := findBuiltin(name); ok {
		o := sdk.Options{Transport: b.make()}
		if s, ok := o.Transport.(interface{ Stats() map[string]float64 }); ok {
			o.Stats = s.Stats
		}
		if p, ok := o.Transport.(interface{ OwnProcess() }); ok {
			p.OwnProcess()
		}
		sdk.Serve(o)
	}
	fmt.Fprintf(os.Stderr, "impi-node has no transport %q built in\n", name)
	os.Exit(statusUsage)
}
