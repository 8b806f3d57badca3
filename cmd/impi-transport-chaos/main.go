// Command impi-transport-chaos is a plugin that disturbs another transport's links
// on purpose, for tests and demonstrations only: docs/chaos.md. Under the name
// impi-transport-chaos-tcp it is the transport "chaos-tcp", and so on.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/openimpi/impi/plugins/sdk"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/transports/quic"
	"github.com/openimpi/impi/transports/shm"
	"github.com/openimpi/impi/transports/support/chaos"
	"github.com/openimpi/impi/transports/tcp"
	"github.com/openimpi/impi/transports/unix"
)

func main() {
	t := chaos.New(chaos.Options{
		Name:   strings.TrimPrefix(filepath.Base(os.Args[0]), "impi-transport-"),
		Around: []transports.Transport{tcp.New(), unix.New(), shm.New(), quic.New()},
		Warn:   func(text string) { fmt.Fprintln(os.Stderr, "[WARN] chaos:", text) },
	})
	sdk.Serve(sdk.Options{Transport: t, Stats: t.Stats})
}
