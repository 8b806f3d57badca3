// Command impi-transport-quic is the transport over QUIC as a plugin of its own.
// It is the same that impi-node has built in.
package main

import (
	"github.com/openimpi/impi/plugins/sdk"
	"github.com/openimpi/impi/transports/quic"
)

func main() {
	t := quic.New()
	t.OwnProcess()
	sdk.Serve(sdk.Options{Transport: t, Stats: t.Stats})
}
