// Command impi-transport-unix is the transport over Unix sockets as a plugin of its own. It
// is the same that impi-node has built in.
package main

import (
	"github.com/openimpi/impi/plugins/sdk"
	"github.com/openimpi/impi/transports/unix"
)

func main() {
	sdk.Serve(sdk.Options{Transport: unix.New()})
}
