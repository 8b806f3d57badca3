package routes_test

import (
	"strings"
	"testing"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/internal/routes/routestest"
	"github.com/openimpi/impi/internal/wireup"
)

// TestCompress: a link is compressed if both sites want it, by any transport that leaves the
// machine, and people are told why it is not.
func TestCompress(t *testing.T) {
	here, there := wire.WorldRank(0), wire.WorldRank(2)
	wants := config.Route{Site: "*", Direct: true, Compress: &config.Compress{Algorithm: config.Zstd, Level: 3, Min: 100}}
	for name, c := range map[string]struct {
		route     config.Route
		theirs    []string // features of the card of the other site's procs
		noCards   bool
		foreign   bool
		transport string
		want      string
		why       string
	}{
		"both":          {route: wants, theirs: []string{"zstd"}, transport: "tcp", want: "zstd, level 3, from 100 bytes"},
		"quic":          {route: wants, theirs: []string{"zstd-0"}, transport: "quic", want: "zstd, level 3, from 100 bytes"},
		"on a machine":  {route: wants, theirs: []string{"zstd"}, transport: "unix", why: "unix does not leave the machine"},
		"not this one":  {route: wants, theirs: []string{"zstd", "no-zstd-0"}, transport: "tcp", why: "the route back of site beta (client 1) has no compress block"},
		"they do not":   {route: wants, transport: "tcp", why: "the route back of site beta (client 1) has no compress block"},
		"we do not":     {route: config.Route{Site: "*"}, theirs: []string{"zstd"}, transport: "tcp"},
		"not to beta":   {route: config.Route{Site: "gamma", Compress: wants.Compress}, theirs: []string{"zstd"}, transport: "tcp"},
		"another MPI":   {route: wants, foreign: true, noCards: true, transport: "tcp", why: "site beta (client 1) is run by another MPI"},
		"by the agents": {route: wants, theirs: []string{"zstd"}, want: "zstd, level 3, from 100 bytes", why: "packets go through the agents"},
	} {
		job := routestest.Job()
		job.Sites[0].Routes = []config.Route{c.route}
		rt := routestest.TwoSites(job, &job.Sites[0], c.route)
		for i := range rt.World.Clients {
			rt.World.Clients[i].Own = true
		}
		ours := &dynamic.BusinessCard{Node: "m0", Features: routes.CompressFeatures(job, job.Sites[0])}
		rt.Cards = routestest.Cards(ours, ours, &dynamic.BusinessCard{Node: "m1", Features: c.theirs}, &dynamic.BusinessCard{Node: "m1", Features: c.theirs})
		if c.noCards {
			rt.Cards = nil
		}
		if c.foreign {
			rt.World.Clients[1].Own = false
			job.Sites[1].Foreign = true
		}
		got, text := routes.Compress(rt, here, there, rt.Transport(c.transport)), ""
		if got != nil {
			text = got.String()
		}
		if text != c.want {
			t.Errorf("%s: %q, want %q", name, text, c.want)
		}
		if why := routes.WhyNotCompressed(rt, here, there, c.transport); !strings.HasPrefix(why, c.why) || c.why == "" && why != "" {
			t.Errorf("%s: %q, want %q", name, why, c.why)
		}
	}
}

// TestCompressChannel: channels of hosts are compressed as links between their procs.
func TestCompressChannel(t *testing.T) {
	wants := config.Route{Site: "*", Compress: &config.Compress{Algorithm: wireup.Zstd, Level: 1, Min: 100}}
	job := routestest.Job()
	rt := routestest.TwoSites(job, &job.Sites[0], wants)
	rt.World.Procs = startup.ListProcs(startup.ProcInfo{}, startup.ProcInfo{}, startup.ProcInfo{Client: 1, Host: 1}, startup.ProcInfo{Client: 1, Host: 1})
	both := &dynamic.BusinessCard{Features: []string{wireup.Zstd}}
	for name, c := range map[string]struct {
		theirs *dynamic.BusinessCard
		want   bool
	}{"both": {both, true}, "one": {&dynamic.BusinessCard{}, false}, "another MPI": {nil, false}} {
		rt.Cards = routestest.Cards(both, both, c.theirs, c.theirs)
		got, err := routes.CompressChannel(rt, 0, 1)
		if err != nil || (got != nil) != c.want || got != nil && (got.Min != 100 || got.Codec == nil) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if got, err := routes.CompressChannel(rt, 0, 7); got != nil || err != nil {
		t.Errorf("to a host without procs: %+v, %v", got, err)
	}
}
