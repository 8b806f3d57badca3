package route

import (
	"slices"
	"testing"

	"github.com/openimpi/impi/core/dynamic"
)

// kind is a transport of tests.
type kind struct {
	machine, encrypts bool
	planes            []string
}

func (k kind) Machine() bool              { return k.machine }
func (k kind) Encrypts() bool             { return k.encrypts }
func (k kind) HasPlane(plane string) bool { return slices.Contains(k.planes, plane) }

var kinds = map[string]kind{
	"shm":  {machine: true, planes: []string{"peer-shm"}},
	"tcp":  {planes: []string{"fd", "ring"}},
	"quic": {encrypts: true, planes: []string{"ring"}},
}

func running(name string) Transport {
	if k, ok := kinds[name]; ok {
		return k
	}
	return nil
}

func TestUnfit(t *testing.T) {
	for _, c := range []struct {
		route Route
		name  string
		same  bool
		want  Rule
	}{
		{Route{}, "shm", true, ""},
		{Route{}, "shm", false, OtherMachine},
		{Route{Secrecy: Closed}, "shm", true, ""},
		{Route{Secrecy: Closed}, "tcp", true, NotEncrypted},
		{Route{Secrecy: Encrypted}, "shm", true, NotEncrypted},
		{Route{Secrecy: Encrypted}, "tcp", false, NotEncrypted},
		{Route{Secrecy: Encrypted}, "quic", false, ""},
		{Route{Planes: []string{"peer-shm", "fd"}}, "tcp", false, ""},
		{Route{Planes: []string{"fd"}}, "quic", false, WrongPlane},
	} {
		if got := c.route.Unfit(kinds[c.name], c.same); got != c.want {
			t.Errorf("%+v %s: %q, want %q", c.route, c.name, got, c.want)
		}
	}
}

// TestAddresses: those that are not excluded, in the order of the route and then of the peer's
// card.
func TestAddresses(t *testing.T) {
	all := []string{"shm", "quic", "tcp", "vendor"}
	ours := &dynamic.BusinessCard{Node: "m", Addresses: []dynamic.TransportAddress{{Transport: "tcp", Address: "1"}, {Transport: "quic", Address: "2"}, {Transport: "shm", Address: "3"}}}
	theirs := &dynamic.BusinessCard{Node: "m", Addresses: []dynamic.TransportAddress{{Transport: "tcp", Address: "a"}, {Transport: "shm", Address: "b"}, {Transport: "tcp", Address: "c"}, {Transport: "quic", Address: "d"}, {Transport: "vendor", Address: "e"}}}
	elsewhere, deaf, quiet := *theirs, *theirs, *ours
	elsewhere.Node = "n"
	deaf.Addresses = deaf.Addresses[:1]
	quiet.Addresses = quiet.Addresses[:1]
	for _, c := range []struct {
		what         string
		route        Route
		ours, theirs *dynamic.BusinessCard
		want         string
		rules        []Rule // of all
	}{
		{"all", Route{Direct: true, Prefer: all}, ours, theirs, "bdac", []Rule{"", "", "", NotRunning}},
		{"another machine", Route{Direct: true, Prefer: all}, ours, &elsewhere, "dac", []Rule{OtherMachine, "", "", NotRunning}},
		{"prefer", Route{Direct: true, Prefer: all[2:3]}, ours, theirs, "ac", []Rule{NotPreferred, NotPreferred, "", NotPreferred}},
		{"not offered", Route{Direct: true, Prefer: all}, ours, &deaf, "a", []Rule{NotOffered, NotOffered, "", NotRunning}},
		{"not listening", Route{Direct: true, Prefer: all}, &quiet, theirs, "ac", []Rule{NotRunning, NotRunning, "", NotRunning}},
		{"encrypted", Route{Direct: true, Prefer: all, Secrecy: Encrypted}, ours, theirs, "d", []Rule{NotEncrypted, "", NotEncrypted, NotRunning}},
		{"not direct", Route{Prefer: all}, ours, theirs, "", []Rule{DirectOff, DirectOff, DirectOff, DirectOff}},
		{"no card", Route{Direct: true, Prefer: all}, ours, nil, "", []Rule{NoCards, NoCards, NoCards, NoCards}},
	} {
		got := ""
		for _, o := range c.route.Addresses(running, c.ours, c.theirs) {
			got += o.Address
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
		for i, name := range all {
			if rule := c.route.Excludes(name, running(name), c.ours, c.theirs); rule != c.rules[i] {
				t.Errorf("%s: %s is excluded by %q, want %q", c.what, name, rule, c.rules[i])
			}
		}
	}
}

// TestNative: a site's own MPI is used where no better transport is.
func TestNative(t *testing.T) {
	ours := &dynamic.BusinessCard{Node: "m", Addresses: []dynamic.TransportAddress{{Transport: "tcp"}, {Transport: "shm"}}}
	elsewhere := *ours
	elsewhere.Node = "n"
	for _, c := range []struct {
		what         string
		route        Route
		better       int
		ours, theirs *dynamic.BusinessCard
		want         bool
	}{
		{"first", Route{Direct: true, Prefer: []string{"shm", "tcp"}}, 0, ours, ours, true},
		{"after one that works", Route{Direct: true, Prefer: []string{"shm", "tcp"}}, 1, ours, ours, false},
		{"after one that does not leave the machine", Route{Direct: true, Prefer: []string{"shm", "tcp"}}, 1, ours, &elsewhere, true},
		{"last", Route{Direct: true, Prefer: []string{"shm", "tcp"}}, 2, ours, &elsewhere, false},
		{"after one that does not run", Route{Direct: true, Prefer: []string{"vendor"}}, 1, ours, ours, true},
		{"alone", Route{Direct: true}, 0, ours, ours, true},
		{"without cards", Route{Direct: true, Prefer: []string{"shm", "tcp"}}, 2, nil, nil, true},
		{"not direct", Route{Prefer: []string{"shm"}}, 0, ours, ours, false},
		{"closed", Route{Direct: true, Secrecy: Closed}, 0, ours, ours, true},
		{"encrypted", Route{Direct: true, Secrecy: Encrypted}, 0, ours, ours, false},
	} {
		if got := c.route.Native(0, c.better, running, c.ours, c.theirs); got != c.want {
			t.Errorf("%s: %t", c.what, got)
		}
	}
}

// TestNativeSeesBothEnds: whether a better transport can do what the route demands is up to the
// hosts of both.
func TestNativeSeesBothEnds(t *testing.T) {
	r := Route{Direct: true, Prefer: []string{"shm", "quic", "tcp"}, Planes: []string{"fd", "peer-shm"}}
	older := func(name string) Transport {
		if name == "tcp" {
			return kind{planes: []string{"ring"}}
		}
		return running(name)
	}
	card := func(node string, running func(string) Transport) *dynamic.BusinessCard {
		c := &dynamic.BusinessCard{Node: node, Features: r.NativeFeatures(3, running)}
		for _, name := range r.Prefer {
			c.Addresses = append(c.Addresses, dynamic.TransportAddress{Transport: name})
		}
		return c
	}
	a, b := card("m", running), card("n", older)
	if !slices.Equal(a.Features, []string{"unfit-1", "plain-2"}) || !slices.Equal(b.Features, []string{"unfit-1", "unfit-2"}) {
		t.Errorf("%q and %q", a.Features, b.Features)
	}
	if one, other := r.Native(0, 3, running, a, b), r.Native(0, 3, older, b, a); !one || !other {
		t.Errorf("one end uses the site's own MPI: %t, the other one: %t", one, other)
	}
	if again := card("n", running); r.Native(0, 3, running, a, again) {
		t.Error("both have tcp as the route wants it, and do not use it")
	}
}

// TestNativeWhereOneEncrypts: the plugin of only one host of a site encrypts, by which the route is
// closed there. Both ends do the same, whichever host tells what the site demands.
func TestNativeWhereOneEncrypts(t *testing.T) {
	at := func(encrypts bool) func(string) Transport {
		return func(name string) Transport {
			if name == "vendor" {
				return kind{encrypts: encrypts, planes: []string{"fd"}}
			}
			return running(name)
		}
	}
	for _, prefer := range [][]string{{"vendor"}, {"vendor", "tcp"}, {"tcp", "vendor"}, {"shm", "vendor", "tcp"}, {"quic", "vendor"}} {
		for _, said := range []Secrecy{AnyLink, Closed} {
			for _, machine := range []string{"m", "n"} {
				var routes [2]Route
				var cards [2]*dynamic.BusinessCard
				for i, closed := range []bool{true, false} {
					routes[i] = Route{Direct: true, Prefer: prefer, Secrecy: said}
					cards[i] = &dynamic.BusinessCard{Node: []string{"m", machine}[i]}
					if closed {
						routes[i].Secrecy, cards[i].Features = Closed, []string{ClosedFeature}
					}
					cards[i].Features = append(cards[i].Features, routes[i].NativeFeatures(len(prefer), at(closed))...)
					for _, name := range prefer {
						cards[i].Addresses = append(cards[i].Addresses, dynamic.TransportAddress{Transport: name})
					}
				}
				one := routes[0].Native(0, len(prefer), at(true), cards[0], cards[1])
				other := routes[1].Native(0, len(prefer), at(false), cards[1], cards[0])
				if one != other {
					t.Errorf("%q, demand %v: who encrypts uses the site's own MPI: %t, the other one: %t", prefer, said, one, other)
				}
				if want := prefer[0] != "quic" && (prefer[0] != "shm" || machine != "m"); one != want {
					t.Errorf("%q: the site's own MPI is used: %t", prefer, one)
				}
			}
		}
	}
}

func TestAllows(t *testing.T) {
	r := Route{Direct: true, Prefer: []string{"shm", "quic"}, Secrecy: Closed}
	for name, want := range map[string]bool{"shm": true, "quic": true, "tcp": false} {
		if got := r.Allows(name, kinds[name]); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if r.Direct = false; r.Allows("quic", kinds["quic"]) {
		t.Error("a route without direct links allows one")
	}
}
