package direct

import (
	"slices"
	"strings"
	"testing"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/links"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/internal/routes/routestest"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// TestNativePairs: which pairs use the site's own MPI, and what is said of it and of the
// transports.
func TestNativePairs(t *testing.T) {
	prefer := []string{"unix", "tcp", "quic"}
	for _, c := range []struct {
		what   string
		route  config.Route
		peer   wire.WorldRank
		change func(*Links)
		path   wireup.Path
		says   string // of the site's own MPI
	}{
		{"first", config.Route{Prefer: prefer, Direct: true, Native: true}, 1, nil, wireup.PathNative, "chosen: the route prefers"},
		{"after unix", config.Route{Prefer: prefer, Direct: true, Native: true, NativeAt: 1}, 1, nil, wireup.PathDirect, "possible: not needed"},
		{"after unix, on another machine", config.Route{Prefer: prefer, Direct: true, Native: true, NativeAt: 1}, 1, func(d *Links) { routestest.SetCard(d.Routes, 1, d.Routes.Cards.At(3)) }, wireup.PathNative, "chosen: none of the transports"},
		{"after unix by default", config.Route{Prefer: prefer, Direct: true, Native: true, NativeAt: 1, NativeUsual: true}, 1, nil, wireup.PathDirect, `possible: not needed: unix is faster within a machine than the site's own MPI; "native" first in the route's prefer changes that`},
		{"after unix by default, on another machine", config.Route{Prefer: prefer, Direct: true, Native: true, NativeAt: 1, NativeUsual: true}, 1, func(d *Links) { routestest.SetCard(d.Routes, 1, d.Routes.Cards.At(3)) }, wireup.PathNative, "chosen: it is preferred unless shared memory is possible"},
		{"not preferred", config.Route{Prefer: prefer, Direct: true}, 1, nil, wireup.PathDirect, `excluded: "native" is not in the route's prefer, which is ["unix", "tcp", "quic"]`},
		{"not direct", config.Route{Prefer: prefer, Native: true}, 1, nil, wireup.PathChannel, "excluded: the route has direct = false"},
		{"encrypted", config.Route{Prefer: prefer, Direct: true, RequireTLS: true, Native: true}, 1, nil, wireup.PathDirect, "excluded: the route has require_tls"},
		{"without cards", config.Route{Prefer: prefer, Direct: true, Native: true, NativeAt: 3}, 1, func(d *Links) { d.Routes.Cards = nil }, wireup.PathNative, "chosen"},
		{"another site", config.Route{Prefer: prefer, Direct: true, Native: true}, 2, nil, wireup.PathDirect, ""},
		{"no MPI of its own", config.Route{Prefer: prefer, Direct: true, Native: true}, 1, func(d *Links) { d.Routes.Native = "" }, wireup.PathDirect, ""},
	} {
		c.route.Site = "*"
		d := twoSites(t, c.route)
		d.Routes.Native = "Open MPI 4.1.4"
		if c.change != nil {
			c.change(d)
		}
		x := Pair{0, c.peer}
		if got := d.Path(x); got != c.path {
			t.Errorf("%s: by %s, want %s", c.what, got, c.path)
		}
		used := &wireup.LinkStats{Messages: 1, Routed: true}
		v := d.View(x, d.State(x, nil, used))
		i := slices.IndexFunc(v.Candidates, func(k links.Candidate) bool { return k.Transport == "native (Open MPI 4.1.4)" })
		said := ""
		if i >= 0 {
			said = string(v.Candidates[i].Verdict) + ": " + v.Candidates[i].Reason
		}
		if !strings.HasPrefix(said, c.says) || c.says == "" && said != "" {
			t.Errorf("%s: says %q, want %q", c.what, said, c.says)
		}
		native := c.path == wireup.PathNative
		if v.Native != native || native != (v.State == links.StateLinked && v.Transport == "native (Open MPI 4.1.4)" && i == 0) {
			t.Errorf("%s: %+v", c.what, v)
		}
		if c.route.Native && v.Route.Prefer[c.route.NativeAt] != "native" {
			t.Errorf("%s: prefer %q", c.what, v.Route.Prefer)
		}
		if s := d.State(x, nil, nil); s != links.StateUnused {
			t.Errorf("%s: %s before anything is sent", c.what, s)
		}
		for _, k := range v.Candidates {
			if native && k.Verdict == links.Possible && k.Reason != "not needed: native works" {
				t.Errorf("%s: %s: %s", c.what, k.Transport, k.Reason)
			}
		}
	}
}

// TestNativeOfHostsWhoseTransportsDiffer: both ends of a pair use the site's own MPI if the better
// transport does at one of them what the route wants, and at the other one does not.
func TestNativeOfHostsWhoseTransportsDiffer(t *testing.T) {
	route := config.Route{Site: "alpha", Prefer: []string{"tcp"}, Direct: true, Closed: true, Native: true, NativeAt: 1}
	for one, want := range map[bool]wireup.Path{true: wireup.PathNative, false: wireup.PathDirect} {
		ends := []*Links{twoSites(t, route), twoSites(t, route)}
		for i, d := range ends {
			d.Routes.Native = "Open MPI 4.1.4"
			encrypted := []transports.Feature{transports.FeatureEncrypted}
			if one {
				encrypted = encrypted[:i]
			}
			d.Routes.Transports = []*routes.Transport{routestest.Transport("tcp", transports.ReachNetwork, encrypted...)}
			for _, other := range ends {
				other.Routes.Cards.At(wire.WorldRank(i)).Features = routes.NativeFeatures(d.Routes)
			}
		}
		for i, d := range ends {
			if got := d.Path(Pair{wire.WorldRank(i), wire.WorldRank(1 - i)}); got != want {
				t.Errorf("unfit at one end: %t: end %d uses %s, want %s", one, i, got, want)
			}
		}
	}
}
