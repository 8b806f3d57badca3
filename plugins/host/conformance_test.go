package host

import (
	"testing"

	"github.com/openimpi/impi/transports"
	"github.com/openimpi/impi/transports/transporttest"
)

// The whole contract, through plugin processes, one that listens and one that
// dials, by every data plane.
func TestConformance(t *testing.T) {
	for _, c := range []struct {
		name  string
		plane transports.DataPlane
	}{
		{"tcp", transports.PlaneFD}, {"tcp", transports.PlaneRing}, {"tcp", transports.PlaneStream}, {"tcp", transports.PlaneGRPC},
		{"unix", transports.PlaneFD}, {"unix", transports.PlaneRing},
	} {
		t.Run(c.name+"/"+string(c.plane), func(t *testing.T) {
			planes := []transports.DataPlane{c.plane}
			near, far := builtin(c.name, "").start(t).Pinned(planes), builtin(c.name, "").start(t).Pinned(planes)
			transporttest.Run(t, func(t *testing.T) transporttest.Harness {
				return transporttest.Harness{
					Transport: near, Dialler: far,
					Listen: transports.ListenSpec{Host: "127.0.0.1", Dir: privateDir(t), Name: "suite"},
				}
			})
		})
	}
}
