// Command impi-transport-pretend is a plugin whose links are by data plane "rdma": memory that the
// processes of one machine share pretends to be the remote memory of a fabric. It shows what a
// vendor of such hardware writes, and tests use it; jobs on one machine are faster with the
// built-in transport through shared memory.
package main

import (
	"log"

	"github.com/openimpi/impi/plugins/sdk"
	"github.com/openimpi/impi/plugins/sdk/transports/fabric/fabrictest"
)

// transport logs at its end how often memory was registered.
type transport struct{ *fabrictest.Transport }

// Close is called when the plugin ends.
func (t transport) Close() error {
	c := t.Cache().Counts()
	sdk.Logger().Info("memory of procs", "registrations", c.Misses, "used_again", c.Hits, "evictions", c.Evictions, "refused", c.Refused)
	return nil
}

func main() {
	t, err := fabrictest.New()
	if err != nil {
		log.Fatal(err)
	}
	sdk.Serve(sdk.Options{Transport: transport{t}, Stats: func() map[string]float64 {
		c := t.Cache().Counts()
		return map[string]float64{
			"registered_bytes": float64(c.Registered), "registrations": float64(c.Misses),
			"registration_hits": float64(c.Hits), "registration_evictions": float64(c.Evictions),
		}
	}})
}
