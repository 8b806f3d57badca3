package unproved

import (
	"net"
	"net/netip"
	"testing"
)

func source(s string) Source { return From(netip.MustParseAddr(s)) }

func TestSources(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"192.0.2.1", "192.0.2.1", true},
		{"192.0.2.1", "192.0.2.2", false},
		{"192.0.2.1", "::ffff:192.0.2.1", true},
		{"2001:db8::1", "2001:db8::2", true},
		{"2001:db8::1", "2001:db8:0:1::1", false},
		{"fe80::1%a", "fe80::1%b", true},
		{"::1", "::2", false},
	} {
		if got := source(c.a) == source(c.b); got != c.same {
			t.Errorf("%s and %s: same source is %v", c.a, c.b, got)
		}
	}
	if FromAddr(&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 5}) != source("192.0.2.1") || FromAddr(&net.UnixAddr{Name: "/x"}) != (Source{}) {
		t.Error("addresses of package net have other sources")
	}
	for s, want := range map[Source]string{
		{}: "no address", source("192.0.2.1"): "192.0.2.1", source("2001:db8::9"): "2001:db8::/64", source("::1"): "::1",
		From(netip.Addr{}): "no address",
	} {
		if s.String() != want {
			t.Errorf("%q, want %q", s, want)
		}
	}
}

func TestOldestOfTheSourceGoesFirst(t *testing.T) {
	r := NewSet[int](Limits{PerSource: 3, Total: 10})
	many, other := source("192.0.2.1"), source("192.0.2.2")
	r.Enter(100, other)
	for i := range 3 {
		if out, evicted := r.Enter(i, many); evicted {
			t.Fatalf("%d: %d goes", i, out)
		}
	}
	for i := 3; i < 500; i++ {
		if out, evicted := r.Enter(i, many); !evicted || out != i-3 {
			t.Fatalf("%d comes: %d goes (%v)", i, out, evicted)
		}
	}
	if r.Len() != 4 {
		t.Errorf("%d connections", r.Len())
	}
}

func TestBiggestSourceMakesRoomForOthers(t *testing.T) {
	r := NewSet[int](Limits{PerSource: 4, Total: 6})
	a, b := source("192.0.2.1"), source("192.0.2.2")
	r.Enter(1, b)
	r.Enter(2, b)
	for i := 3; i < 7; i++ {
		r.Enter(i, a)
	}
	if out, evicted := r.Enter(7, source("192.0.2.3")); !evicted || out != 3 {
		t.Errorf("%d goes (%v), want 3, the oldest of those that are most", out, evicted)
	}
	r.Leave(4)
	r.Leave(4)
	r.Leave(1000)
	if _, evicted := r.Enter(8, source("192.0.2.4")); evicted {
		t.Error("somebody had to go although there was room")
	}
	// Those without an address are bounded by the total only.
	r = NewSet[int](Limits{PerSource: 1, Total: 3})
	for i := range 4 {
		out, evicted := r.Enter(i, Source{})
		if evicted != (i == 3) || out != 0 {
			t.Errorf("%d comes: %d goes (%v)", i, out, evicted)
		}
	}
}
