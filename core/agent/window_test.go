package agent

import (
	"testing"

	"github.com/openimpi/impi/core/wire"
)

// TestWindowCounts goes through a window's life.
func TestWindowCounts(t *testing.T) {
	w := newWindows(3, 5)
	c := &w.pair(pairOf{1, 6}).in
	fill := func(why string, want int) {
		t.Helper()
		n := 0
		for w.packet(c) {
			n++
		}
		if n != want {
			t.Fatalf("%s: room for %d packets, want %d", why, n, want)
		}
	}
	fill("new", 5)
	if !w.ack(c) {
		t.Fatal("an honest PROTOACK was refused")
	}
	fill("one PROTOACK", 3)
	for i, want := range []bool{true, true, true, false, false} {
		if w.ack(c) != want { // 2, -1, -4, and no further
			t.Fatalf("PROTOACK %d: not %v", i, want)
		}
	}
	fill("after many PROTOACKs", 9)
}

// TestWindowPairs: the directions and pairs do not mix.
func TestWindowPairs(t *testing.T) {
	w := newWindows(1, 1)
	seen := map[*int64]bool{}
	for local := range wire.WorldRank(2) {
		for remote := range wire.WorldRank(4) {
			p := w.pair(pairOf{local, remote})
			if seen[&p.in] || seen[&p.out] || p != w.pair(pairOf{local, remote}) {
				t.Fatalf("pair %d, %d is not its own", local, remote)
			}
			seen[&p.in], seen[&p.out] = true, true
		}
	}
}
