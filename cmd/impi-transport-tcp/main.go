// Command impi-transport-tcp is the transport over TCP/IP as a plugin of its own. It
// is the same that impi-node has built in.
package main

import (
	"github.com/openimpi/impi/plugins/sdk"
	"github.com/openimpi/impi/transports/tcp"
)

func main() {
	sdk.Serve(sdk.Options{Transport: tcp.New()})
}
