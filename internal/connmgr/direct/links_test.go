package direct

import (
	"slices"
	"testing"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/lifetime"
	"github.com/openimpi/impi/internal/procs"
	"github.com/openimpi/impi/internal/routes/routestest"
)

// twoSites is alpha's links: it has ranks 0 and 1; beta has 2 and 3.
func twoSites(t *testing.T, own ...config.Route) *Links {
	t.Helper()
	job := routestest.Job()
	site := job.Sites[0]
	rt := routestest.TwoSites(job, &site, own...)
	set := procs.NewWithoutProcesses(procs.Settings{Routes: rt}, 2, ending.InMPI)
	set.SetRanks()
	return New(Settings{Routes: rt, Procs: set, Tasks: lifetime.NewGroup(t.Context())})
}

func TestCandidatesByRoutes(t *testing.T) {
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
		d := twoSites(t, c.route)
		var got []string
		for _, w := range d.Candidates(Pair{0, c.peer}) {
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

func TestNoCandidateWithoutCards(t *testing.T) {
	d := twoSites(t)
	routestest.SetCard(d.Routes, 2, nil)
	if w := d.Candidates(Pair{0, 2}); w != nil {
		t.Errorf("%v", w)
	}
	if got := d.Routes.Data(0, 2); got != "external32" {
		t.Errorf("data to a foreign peer is %s", got)
	}
}

func TestJudgement(t *testing.T) {
	type links = *dynamic.PairLinks[Pair]
	dialled := func(t links, x Pair) { t.Request(x) }
	for _, c := range []struct {
		name     string
		src, dst wire.WorldRank
		before   func(links, Pair)
		want     dynamic.Verdict
		after    dynamic.PairState
	}{
		{"first", 2, 0, func(links, Pair) {}, dynamic.Accepted, dynamic.Linked},
		{"tie, we are lower", 2, 1, dialled, dynamic.TieLost, dynamic.Dialling},
		{"tie, we are higher", 0, 1, dialled, dynamic.Accepted, dynamic.Linked},
		{"linked already", 2, 1, func(t links, x Pair) { dialled(t, x); t.Made(x) }, dynamic.TieLost, dynamic.Linked},
		{"we gave up before", 2, 1, func(t links, x Pair) { dialled(t, x); t.GiveUp(x) }, dynamic.NotAllowed, dynamic.Refused},
		{"no such source", 4, 1, func(links, Pair) {}, dynamic.UnknownRank, dynamic.Unlinked},
		{"not our proc", 0, 2, func(links, Pair) {}, dynamic.UnknownRank, dynamic.Unlinked},
		{"far beyond", 0, 1 << 30, func(links, Pair) {}, dynamic.UnknownRank, dynamic.Unlinked},
	} {
		d := twoSites(t)
		x := Pair{c.dst, c.src}
		c.before(&d.links.Pairs, x)
		p, got := d.judge(dynamic.Hello{Src: c.src, Dst: c.dst}, d.Routes.Transport("tcp"))
		if after := d.links.Pairs.State(x); got != c.want || after != c.after || (p != nil) != (got == dynamic.Accepted) {
			t.Errorf("%s: %v, phase %d, proc %v; want %v, phase %d", c.name, got, after, p, c.want, c.after)
		}
	}
}

func TestFinishedProcTakesNoLink(t *testing.T) {
	d := twoSites(t)
	d.Procs = procs.NewWithoutProcesses(procs.Settings{Routes: d.Routes}, 2, ending.Finished)
	if _, v := d.judge(dynamic.Hello{Src: 2, Dst: 0}, d.Routes.Transport("tcp")); v != dynamic.Leaving {
		t.Errorf("%v", v)
	}
}

func TestAcceptorsRouteCounts(t *testing.T) {
	d := twoSites(t, config.Route{Site: "beta", Prefer: []string{"quic", "tcp"}, Direct: true, RequireTLS: true})
	for name, want := range map[string]dynamic.Verdict{"tcp": dynamic.NotAllowed, "unix": dynamic.NotAllowed, "quic": dynamic.Accepted} {
		if _, v := d.judge(dynamic.Hello{Src: 2, Dst: 0}, d.Routes.Transport(name)); v != want {
			t.Errorf("%s: %v, want %v", name, v, want)
		}
	}
}
