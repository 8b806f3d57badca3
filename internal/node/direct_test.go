package node

import (
	"slices"
	"testing"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/node/procs"
	"github.com/openimpi/impi/internal/node/routes"
	"github.com/openimpi/impi/internal/node/site"
	"github.com/openimpi/impi/transports"
)

// fake is a transport with nothing but capabilities.
type fake struct {
	transports.Transport
	c transports.Capabilities
}

func (f fake) Capabilities() transports.Capabilities { return f.c }

func fakeTransport(name string, reach transports.Reach, features ...transports.Feature) *routes.Transport {
	c := transports.Capabilities{DataPlanes: []transports.DataPlane{transports.PlaneFD}, Features: features, Reach: reach}
	return &routes.Transport{Transport: fake{c: c}, Name: name}
}

// twoSites is a node of client 0 with ranks 0 and 1; client 1 has 2 and 3.
func twoSites(t *testing.T, own ...config.Route) *node {
	t.Helper()
	job := testJob("ring", 2, 2)
	job.Sites[0].Routes = own
	h := &ownHost{Host: &site.Host{Config: job.Sites[0].Hosts[0]}}
	n := &node{opt: Options{Job: job, Site: job.Sites[0]}, hosts: []*ownHost{h}}
	n.routes = routes.Table{Job: job, Site: &n.opt.Site}
	n.job = &startup.Job{Clients: []startup.ClientInfo{{}, {Rank: 1, FirstProc: 2, FirstHost: 1}}, Procs: make([]startup.ProcInfo, 4)}
	n.routes.World = n.job
	n.job.Procs[2].Client, n.job.Procs[3].Client = 1, 1
	n.procs = procs.Unstarted(procs.Settings{Routes: &n.routes}, 2, procs.InMPI)
	n.procs.Place()
	n.routes.Transports = []*routes.Transport{
		fakeTransport("unix", transports.ReachMachine),
		fakeTransport("tcp", transports.ReachNetwork),
		fakeTransport("quic", transports.ReachNetwork, transports.FeatureEncrypted),
	}
	for r, node := range []string{"m0", "m0", "m0", "m1"} {
		_ = r
		n.routes.Cards = append(n.routes.Cards, &dynamic.Card{Node: node, Offers: []dynamic.Offer{
			{Transport: "quic", Address: "q"}, {Transport: "tcp", Address: "t1"}, {Transport: "tcp", Address: "t2"}, {Transport: "unix", Address: "u"},
		}})
	}
	n.direct = &directLinks{n: n}
	return n
}

func TestWays(t *testing.T) {
	all := []string{"unix", "tcp", "quic"}
	for _, c := range []struct {
		name  string
		route config.Route
		peer  wire.WorldRank
		want  []string
	}{
		{"same machine", config.Route{Prefer: all, Direct: true}, 2, []string{"u", "t1", "t2", "q"}},
		{"other machine", config.Route{Prefer: all, Direct: true}, 3, []string{"t1", "t2", "q"}},
		{"the route's order", config.Route{Prefer: []string{"quic", "unix"}, Direct: true}, 2, []string{"q", "u"}},
		{"channel", config.Route{Prefer: all}, 2, nil},
		{"encrypted", config.Route{Prefer: all, Direct: true, RequireTLS: true}, 2, []string{"q"}},
		{"data plane", config.Route{Prefer: all, Direct: true, DataPlane: []string{"ring"}}, 2, nil},
		{"not running", config.Route{Prefer: []string{"shm"}, Direct: true}, 2, nil},
	} {
		c.route.Site = "*"
		n := twoSites(t, c.route)
		var got []string
		for _, w := range n.ways(pair{0, c.peer}) {
			got = append(got, w.Address)
			if w.From != "127.0.0.2" {
				t.Errorf("%s: dials from %s", c.name, w.From)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestNoWayWithoutCards(t *testing.T) {
	n := twoSites(t)
	n.routes.Cards[2] = nil
	if w := n.ways(pair{0, 2}); w != nil {
		t.Errorf("%v", w)
	}
	if got := n.routes.Data(0, 2); got != "external32" {
		t.Errorf("data to a foreign peer is %s", got)
	}
}

func TestJudgement(t *testing.T) {
	type ties = *dynamic.Ties[pair]
	dialled := func(t ties, x pair) { t.Want(x) }
	for _, c := range []struct {
		name     string
		src, dst wire.WorldRank
		before   func(ties, pair)
		want     dynamic.Verdict
		after    dynamic.Phase
	}{
		{"first", 2, 0, func(ties, pair) {}, dynamic.Accepted, dynamic.Linked},
		{"tie, we are lower", 2, 1, dialled, dynamic.TieLost, dynamic.Dialling},
		{"tie, we are higher", 0, 1, dialled, dynamic.Accepted, dynamic.Linked},
		{"linked already", 2, 1, func(t ties, x pair) { dialled(t, x); t.Made(x) }, dynamic.TieLost, dynamic.Linked},
		{"we gave up before", 2, 1, func(t ties, x pair) { dialled(t, x); t.GiveUp(x) }, dynamic.NotAllowed, dynamic.Refused},
		{"no such source", 4, 1, func(ties, pair) {}, dynamic.UnknownRank, dynamic.Unlinked},
		{"not our proc", 0, 2, func(ties, pair) {}, dynamic.UnknownRank, dynamic.Unlinked},
		{"far beyond", 0, 1 << 30, func(ties, pair) {}, dynamic.UnknownRank, dynamic.Unlinked},
	} {
		n := twoSites(t)
		x := pair{c.dst, c.src}
		c.before(&n.direct.ties, x)
		p, got := n.direct.judge(dynamic.Hello{Src: c.src, Dst: c.dst}, n.routes.Transport("tcp"))
		if after := n.direct.ties.Phase(x); got != c.want || after != c.after || (p != nil) != (got == dynamic.Accepted) {
			t.Errorf("%s: %v, phase %d, proc %v; want %v, phase %d", c.name, got, after, p, c.want, c.after)
		}
	}
}

func TestFinishedProcTakesNoLink(t *testing.T) {
	n := twoSites(t)
	n.procs = procs.Unstarted(procs.Settings{Routes: &n.routes}, 2, procs.Finished)
	if _, v := n.direct.judge(dynamic.Hello{Src: 2, Dst: 0}, n.routes.Transport("tcp")); v != dynamic.Leaving {
		t.Errorf("%v", v)
	}
}

func TestAcceptorsRouteCounts(t *testing.T) {
	n := twoSites(t, config.Route{Site: "beta", Prefer: []string{"quic", "tcp"}, Direct: true, RequireTLS: true})
	for name, want := range map[string]dynamic.Verdict{"tcp": dynamic.NotAllowed, "unix": dynamic.NotAllowed, "quic": dynamic.Accepted} {
		if _, v := n.direct.judge(dynamic.Hello{Src: 2, Dst: 0}, n.routes.Transport(name)); v != want {
			t.Errorf("%s: %v, want %v", name, v, want)
		}
	}
}

// twoHosts are those of the two sites.
func twoHosts() []startup.HostInfo { return []startup.HostInfo{{}, {Client: 1}} }
