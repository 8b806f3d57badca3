// Command impi-transport-ofi carries links over libfabric, and so over the networks that
// libfabric has providers for. It is a vendor's plugin: it uses what vendors get, and nothing
// else of impi.
package main

import "github.com/openimpi/impi/plugins/sdk"

func main() {
	sdk.Serve(sdk.Options{Transport: newTransport()})
}
