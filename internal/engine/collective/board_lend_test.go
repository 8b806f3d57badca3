package collective

import (
	"testing"

	"github.com/openimpi/impi/core/board"
)

// Procs that are bound each to cores of its own do not share them, however few each has.
func TestOversubscribed(t *testing.T) {
	for _, tc := range []struct {
		name    string
		members []board.Cores
		procs   int
		want    bool
	}{
		{"all may use all of many", []board.Cores{{Count: 8}, {Count: 8}, {Count: 8}}, 8, false},
		{"all may use all of few", []board.Cores{{Count: 8}, {Count: 8}}, 9, true},
		{"each has its own", []board.Cores{{Count: 1}, {Count: 1, First: 1}, {Count: 1, First: 2}}, 3, false},
		{"each has its own, some of them here", []board.Cores{{Count: 1, First: 5}, {Count: 1, First: 2}}, 16, false},
		{"bound to sockets", []board.Cores{{Count: 8}, {Count: 8, First: 8}, {Count: 8}, {Count: 8, First: 8}}, 16, false},
		{"bound to sockets that are full", []board.Cores{{Count: 8}, {Count: 8, First: 8}, {Count: 8}, {Count: 8, First: 8}}, 17, true},
		{"all bound to the same", []board.Cores{{Count: 1}, {Count: 1}}, 2, true},
	} {
		if got := oversubscribed(tc.members, tc.procs); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}
