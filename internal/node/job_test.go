package node

import (
	"fmt"
	"os"
	"testing"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/internal/routes/routestest"
	"github.com/openimpi/impi/internal/site"
)

// TestDataOfForeignSites: what the file says of a site that somebody else runs
// counts, and a client that has not said that it is ours is foreign, whatever it is in the file.
func TestDataOfForeignSites(t *testing.T) {
	lam := func(n *node) { n.opt.Job.Sites[1].Foreign, n.opt.Job.Sites[1].Implementation = true, config.LAM71 }
	silent := func(n *node) { n.job.Clients[1].Own = false }
	unknown := func(n *node) { n.opt.Job.Sites = n.opt.Job.Sites[:1] }
	for _, c := range []struct {
		name            string
		route           config.Route
		change          func(*node)
		data            string
		foreign, reduce bool
	}{
		{"ours", config.Route{}, func(*node) {}, datatype.HostOrder().String(), false, false},
		{"LAM/MPI", config.Route{}, lam, "native-x86", true, true},
		{"by the route", config.Route{Representation: config.NativeBE}, func(n *node) { n.opt.Job.Sites[1].Foreign = true }, "native-be", true, false},
		{"the standard", config.Route{}, func(n *node) { n.opt.Job.Sites[1].Foreign = true }, "external32", true, false},
		{"not in the file", config.Route{}, func(n *node) { unknown(n); silent(n) }, "external32", true, false},
		{"not in the file, but ours", config.Route{}, unknown, datatype.HostOrder().String(), false, false},
		{"in the file as ours, but does not say so", config.Route{}, silent, "external32", true, false},
		{"does not know that this one is ours", config.Route{}, func(n *node) { n.job.Clients[0].Own = false }, "external32", true, false},
	} {
		c.route.Site, c.route.Prefer = "*", []string{"tcp"}
		n := twoSites(t, c.route)
		n.opt.Site = n.opt.Job.Sites[0]
		n.job.Clients[0].Own, n.job.Clients[1].Own = true, true
		c.change(n)
		for rank := range n.job.Procs.All() {
			n.routes.Cards.At(rank).ByteOrder = site.ByteOrder()
		}
		if c.foreign {
			routestest.SetCard(n.routes, 2, nil)
			routestest.SetCard(n.routes, 3, nil)
		}
		views := viewsFor(n, n.procs.All())
		if p := views[0]; p.Data != datatype.HostOrder().String() || p.Foreign || p.ReduceOnPointToPoint {
			t.Errorf("%s: own proc %+v", c.name, p)
		}
		if v := views[len(views)-1]; v.First > 2 || v.Data != c.data || v.Foreign != c.foreign || v.ReduceOnPointToPoint != c.reduce {
			t.Errorf("%s: from rank %d on data %s, foreign %v, reduce %v", c.name, v.First, v.Data, v.Foreign, v.ReduceOnPointToPoint)
		}
	}
}

// TestTraceName: files of ranks, and of jobs side by side, have names of their own.
func TestTraceName(t *testing.T) {
	for pattern, want := range map[string]string{"": "", "/t/calls.json": "/t/calls.json", "/t/%r-%p-%r.json": fmt.Sprintf("/t/17-%d-17.json", os.Getpid())} {
		if got := traceOf(pattern, 17); got != want {
			t.Errorf("%q stands for %q, want %q", pattern, got, want)
		}
	}
}
