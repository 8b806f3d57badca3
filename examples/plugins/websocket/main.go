// Command impi-transport-websocket carries links over WebSockets, through HTTP
// proxies and gateways where nothing else gets through. It is an example of a
// vendor's plugin: it uses what vendors get, and nothing else of impi.
package main

import "github.com/openimpi/impi/plugins/sdk"

func main() {
	sdk.Serve(sdk.Options{Transport: newTransport()})
}
