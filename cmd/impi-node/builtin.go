package main

import (
	"fmt"
	"os"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/plugins/sdk"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/transports/quic"
	"github.com/openimpi/impi/transports/shm"
	"github.com/openimpi/impi/transports/tcp"
	"github.com/openimpi/impi/transports/unix"
)

// builtin is a transport that needs no plugin file. To add one, add an entry to builtins,
// and a folder: docs/howto/transport.md.
type builtin struct {
	config.Builtin
	make func() transports.Transport
}

// builtins are the built-in transports, best first.
var builtins = []builtin{
	{config.Builtin{Name: "shm", Machine: true, Memory: true}, func() transports.Transport { return shm.New() }},
	{config.Builtin{Name: "unix", Machine: true}, func() transports.Transport { return unix.New() }},
	{
		config.Builtin{Name: "tcp", EncryptsBy: "tls", Channels: true, NotForChannels: []string{"tls", "also"}},
		func() transports.Transport { return tcp.New() },
	},
	{config.Builtin{Name: "quic", NeedsBlock: true, Encrypts: true, Datagrams: true}, func() transports.Transport { return quic.New() }},
}

func loadOptions() config.Options {
	return config.Options{Builtins: known(), Cores: usableCores(), Tasks: tasksOf(os.Environ())}
}

func known() []config.Builtin {
	list := make([]config.Builtin, len(builtins))
	for i, b := range builtins {
		list[i] = b.Builtin
	}
	return list
}

func findBuiltin(name string) (builtin, bool) {
	for _, b := range builtins {
		if b.Name == name {
			return b, true
		}
	}
	return builtin{}, false
}

// serveBuiltin serves a built-in transport in this process, as a plugin. It does not
// return.
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
