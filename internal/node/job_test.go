package node

import (
	"testing"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/internal/node/site"
)

// TestDataOfForeignSites: what the file says of a site that somebody else runs
// counts, and a client of which it says nothing is foreign unless it is ours.
func TestDataOfForeignSites(t *testing.T) {
	lam := func(n *node) { n.opt.Job.Sites[1].Foreign, n.opt.Job.Sites[1].Implementation = true, config.LAM71 }
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
		{"not in the file", config.Route{}, unknown, "external32", true, false},
		{"not in the file, but ours", config.Route{}, func(n *node) { unknown(n); n.job.Clients[1].Own = true }, datatype.HostOrder().String(), false, false},
	} {
		c.route.Site, c.route.Prefer = "*", []string{"tcp"}
		n := twoSites(t, c.route)
		n.opt.Site = n.opt.Job.Sites[0]
		c.change(n)
		for _, card := range n.routes.Cards {
			card.ByteOrder = site.ByteOrder()
		}
		if c.foreign {
			n.routes.Cards[2], n.routes.Cards[3] = nil, nil
		}
		p := procsFor(n, n.procs.All())
		if p[0].Data != datatype.HostOrder().String() || p[0].Foreign || p[0].ReduceOnPointToPoint {
			t.Errorf("%s: own proc %+v", c.name, p[0])
		}
		if p[2].Data != c.data || p[2].Foreign != c.foreign || p[2].ReduceOnPointToPoint != c.reduce {
			t.Errorf("%s: data %s, foreign %v, reduce %v", c.name, p[2].Data, p[2].Foreign, p[2].ReduceOnPointToPoint)
		}
	}
}
