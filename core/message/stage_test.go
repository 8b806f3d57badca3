package message

import (
	"testing"

	"pgregory.net/rapid"
)

// The ring never hands out bytes that are in use, keeps the order, and takes
// everything that fits when it is empty.
func TestStage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(8, 64).Draw(t, "size")
		s := stage{buf: make([]byte, size)}
		type piece struct{ at, n int }
		var live []piece
		for range 200 {
			if n := rapid.IntRange(1, size).Draw(t, "n"); rapid.Bool().Draw(t, "alloc") {
				b, at := s.alloc(n)
				if b == nil {
					if len(live) == 0 {
						t.Fatalf("%d bytes do not fit into an empty stage of %d", n, size)
					}
					continue
				}
				if len(b) != n {
					t.Fatalf("%d bytes instead of %d", len(b), n)
				}
				for _, p := range live {
					if at < p.at+p.n && p.at < at+n {
						t.Fatalf("[%d,%d) is in use as [%d,%d)", at, at+n, p.at, p.at+p.n)
					}
				}
				live = append(live, piece{at, n})
			} else if len(live) > 0 {
				k := min(n, live[0].n)
				s.consume(k)
				live[0].at += k
				if live[0].n -= k; live[0].n == 0 {
					live = live[1:]
				}
			}
		}
	})
}
