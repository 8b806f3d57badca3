package direct

import (
	"testing"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/routes/routestest"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/plugins/host"
)

// TestCandidates: each rule that keeps a transport from a pair is named; what is
// left is what ways has, in its order.
func TestCandidates(t *testing.T) {
	all := []string{"unix", "tcp", "quic"}
	for _, c := range []struct {
		name   string
		route  config.Route
		peer   wire.WorldRank
		change func(*Links)
		want   string
	}{
		{"one machine", config.Route{Prefer: all, Direct: true}, 2, nil,
			"unix possible, tcp possible, tcp possible, quic possible"},
		{"another machine", config.Route{Prefer: all, Direct: true}, 3, nil,
			"unix excluded by other-machine, tcp possible, tcp possible, quic possible"},
		{"not in prefer", config.Route{Prefer: []string{"quic"}, Direct: true}, 2, nil,
			"quic possible, unix excluded by prefer, tcp excluded by prefer"},
		{"direct = false", config.Route{Prefer: []string{"tcp"}}, 2, nil,
			"tcp excluded by direct, unix excluded by direct, quic excluded by direct"},
		{"require_tls", config.Route{Prefer: all, Direct: true, RequireTLS: true}, 2, nil,
			"unix excluded by require-tls, tcp excluded by require-tls, quic possible"},
		{"data_plane", config.Route{Prefer: []string{"tcp"}, Direct: true, DataPlane: []string{"ring"}}, 2, nil,
			"tcp excluded by data-plane, unix excluded by prefer, quic excluded by prefer"},
		{"no plugin runs", config.Route{Prefer: []string{"shm"}, Direct: true}, 2, nil,
			"shm excluded by not-running, unix excluded by prefer, tcp excluded by prefer, quic excluded by prefer"},
		{"not offered", config.Route{Prefer: []string{"unix"}, Direct: true}, 2, func(d *Links) { d.Routes.Cards.At(2).Addresses = d.Routes.Cards.At(2).Addresses[:1] },
			"unix excluded by not-offered, tcp excluded by prefer, quic excluded by prefer"},
		{"foreign", config.Route{Prefer: []string{"tcp"}, Direct: true}, 2, func(d *Links) { routestest.SetCard(d.Routes, 2, nil) },
			"tcp excluded by foreign, unix excluded by foreign, quic excluded by foreign"},
	} {
		c.route.Site = "*"
		d := twoSites(t, c.route)
		if c.change != nil {
			c.change(d)
		}
		x := Pair{0, c.peer}
		list := d.candidates(x, &record{})
		if got := routestest.Verdicts(links.View{Candidates: list}); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
		possible := 0
		for i, k := range list {
			if k.Reason == "" {
				t.Errorf("%s: no reason for %s", c.name, k.Transport)
			}
			if k.Verdict == links.Possible {
				if w := d.Candidates(x)[possible]; w.Transport.Name != k.Transport || w.Address != k.Address || i != possible && c.name == "one machine" {
					t.Errorf("%s: %s at %s is not way %d", c.name, k.Transport, k.Address, possible)
				}
				possible++
			}
		}
		if possible != len(d.Candidates(x)) {
			t.Errorf("%s: %d candidates of %d ways", c.name, possible, len(d.Candidates(x)))
		}
	}
}

// TestCandidatesOfALinkedPair: who dialled has tried; who was dialled has not.
func TestCandidatesOfALinkedPair(t *testing.T) {
	d := twoSites(t, config.Route{Site: "*", Prefer: []string{"unix", "tcp"}, Direct: true})
	x := Pair{0, 2}
	d.past.given(x, &wireup.Message{Transport: "unix", DataPlane: "fd"}, host.LinkID{}, false)
	r := d.past.of(x)
	if got, want := routestest.Verdicts(links.View{Candidates: d.candidates(x, &r)}), "unix chosen, tcp possible, tcp possible, quic excluded by prefer"; got != want {
		t.Errorf("dialled: %s, want %s", got, want)
	}
	// The acceptor's node allows what its own card does not offer any more.
	r.transport = "quic"
	if got, want := routestest.Verdicts(links.View{Candidates: d.candidates(x, &r)}), "unix possible, tcp possible, tcp possible, quic chosen"; got != want {
		t.Errorf("chosen by the peer: %s, want %s", got, want)
	}
}
