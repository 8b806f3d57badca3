// Command impi-transport-shm is the transport through shared memory as a plugin of its
// own. It is the same that impi-node has built in.
package main

import (
	"github.com/openimpi/impi/plugins/sdk"
	"github.com/openimpi/impi/transports/shm"
)

func main() {
	sdk.Serve(sdk.Options{Transport: shm.New()})
}
