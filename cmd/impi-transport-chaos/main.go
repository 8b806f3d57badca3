// Command impi-transport-chaos is a plugin that disturbs another transport's links
// on purpose, for tests and demonstrations only: docs/transports.md.
package main

import (
	"fmt"
	"os"

	"github.com/openimpi/impi/plugins/sdk"
	"github.com/openimpi/impi/transports/chaos"
	"github.com/openimpi/impi/transports/shm"
	"github.com/openimpi/impi/transports/tcp"
	"github.com/openimpi/impi/transports/unix"
)

func main() {
	warn := func(text string) { fmt.Fprintln(os.Stderr, "[WARN] chaos:", text) }
	sdk.Serve(sdk.Options{Transport: chaos.New(warn, tcp.New(), unix.New(), shm.New())})
}
