package host

import (
	"testing"

	"github.com/openimpi/impi/transports"
	"github.com/openimpi/impi/transports/transporttest"
)

// The whole contract, through plugin processes: one that listens and one that
// dials.
func TestConformance(t *testing.T) {
	for _, name := range []string{"tcp", "unix"} {
		t.Run(name, func(t *testing.T) {
			near, far := builtin(name, "").start(t), builtin(name, "").start(t)
			transporttest.Run(t, func(t *testing.T) transporttest.Harness {
				return transporttest.Harness{
					Transport: near.Transport(), Dialler: far.Transport(),
					Listen: transports.ListenSpec{Host: "127.0.0.1", Dir: privateDir(t), Name: "suite"},
				}
			})
		})
	}
}
