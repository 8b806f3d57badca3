package agent

import "testing"

// TestWindowCounts goes through a window's life.
func TestWindowCounts(t *testing.T) {
	w := windows{ackMark: 3, hiWater: 5, hosts: 2, rows: make([][]pair, 4)}
	c := &w.pair(1, 1, 2, 4).in
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

// TestWindowPairs: the directions and pairs do not mix, and rows come lazily.
func TestWindowPairs(t *testing.T) {
	w := windows{ackMark: 1, hiWater: 1, hosts: 3, rows: make([][]pair, 6)}
	seen := map[*int64]bool{}
	for local := range 2 {
		for i := range 4 {
			p := w.pair(local, 2, i, 4)
			if seen[&p.in] || seen[&p.out] || p != w.pair(local, 2, i, 4) {
				t.Fatalf("pair %d, %d is not its own", local, i)
			}
			seen[&p.in], seen[&p.out] = true, true
		}
	}
	if w.rows[0] != nil || w.rows[2] == nil || len(w.rows[5]) != 4 {
		t.Fatal("rows of pairs that never spoke")
	}
}
