package host

import (
	"testing"

	"github.com/openimpi/impi/internal/soak"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
)

// suiteLarge and suiteLinks are how many bytes the suite moves and how many links it makes
// one after another, through plugins: several times what their rings and sockets hold. The
// suite's own figures are for the transports without plugins, and for make soak.
func suiteLarge() int64 { return int64(soak.Repetitions(8<<20, 64<<20)) }

func suiteLinks() int { return soak.Repetitions(100, 500) }

// The whole contract, through plugin processes, one that listens and one that
// dials, by every data plane. Rings are the same for all transports.
func TestConformance(t *testing.T) {
	for _, c := range []struct {
		name  string
		plane transports.DataPlane
	}{
		{"tcp", transports.PlaneFD}, {"tcp", transports.PlaneRing}, {"tcp", transports.PlaneStream}, {"tcp", transports.PlaneGRPC},
		{"unix", transports.PlaneFD}, {"unix", transports.PlaneRing},
	} {
		t.Run(c.name+"/"+string(c.plane), func(t *testing.T) {
			if c.name == "unix" && c.plane == transports.PlaneRing {
				soak.SkipUnlessSoak(t, "make test has rings by tcp")
			}
			planes := []transports.DataPlane{c.plane}
			near, far := builtin(c.name, "").start(t).Pinned(planes), builtin(c.name, "").start(t).Pinned(planes)
			transporttest.Run(t, func(t *testing.T) transporttest.Harness {
				return transporttest.Harness{
					Transport: near, Dialler: far, Large: suiteLarge(), Links: suiteLinks(),
					Listen: transports.ListenSpec{Host: "127.0.0.1", Dir: privateDir(t), Name: "suite"},
				}
			})
		})
	}
}
