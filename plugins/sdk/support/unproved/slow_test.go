package unproved

import (
	"net/netip"
	"testing"
	"time"
)

var start = time.Unix(1_000_000_000, 0)

func TestPausesGrow(t *testing.T) {
	var s Slow
	a, b := source("192.0.2.1"), source("192.0.2.2")
	want := []time.Duration{0, 100, 200, 400, 800, 1600, 3200, 5000, 5000}
	for i, w := range want {
		if got := s.Wrong(a, start); got != w*time.Millisecond {
			t.Errorf("wrong secret %d: %v, want %v", i+1, got, w*time.Millisecond)
		}
	}
	for range 1000 {
		s.Wrong(a, start)
	}
	if got := s.Wrong(a, start); got != lastPause || s.Times(a) != len(want)+1001 {
		t.Errorf("%v after %d", got, s.Times(a))
	}
	if got := s.Wrong(b, start); got != 0 {
		t.Errorf("another source waits %v", got)
	}
	if got := s.Wrong(a, start.Add(forget)); got != 0 {
		t.Errorf("after a quiet minute: %v", got)
	}
}

func TestTableIsBounded(t *testing.T) {
	var s Slow
	of := func(i int) Source { return From(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})) }
	for i := range 3 * maxSources {
		s.Wrong(of(i), start.Add(time.Duration(i)))
	}
	if len(s.bySource) != maxSources {
		t.Errorf("%d sources are remembered", len(s.bySource))
	}
	if s.Times(of(0)) != 0 || s.Times(of(3*maxSources-1)) != 1 {
		t.Error("it is not the quietest that was forgotten")
	}
}
