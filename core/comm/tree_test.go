package comm

import (
	"math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/openimpi/impi/core/wire"
)

// TestTree: every rank has one position, every position but the first one
// parent, and what is below a position are those that follow it.
func TestTree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clients := rapid.SliceOfN(rapid.Map(rapid.IntRange(0, 5), func(c int) wire.ClientRank { return wire.ClientRank(c) }), 1, 70).Draw(t, "clients")
		m := mastersOf(clients)
		tree := NewTree(m)
		if _, ok := tree.Parent(0); ok || tree.Rank(0) != 0 || tree.End(0) != len(clients) {
			t.Fatalf("the root is rank %d, the tree ends at %d of %d", tree.Rank(0), tree.End(0), len(clients))
		}
		seen := make([]bool, len(clients))
		far := 0 // messages that leave a client
		for x := range clients {
			rank := tree.Rank(x)
			if seen[rank] || tree.Position(rank) != x {
				t.Fatalf("rank %d of position %d is at %d", rank, x, tree.Position(rank))
			}
			seen[rank] = true
			below := tree.Ranks(x, tree.End(x)).Procs()
			for i, r := range below {
				if int(r) != tree.Rank(x+i) {
					t.Fatalf("ranks from %d to %d are %v", x, tree.End(x), below)
				}
			}
			if len(below) != tree.End(x)-x {
				t.Fatalf("ranks from %d to %d are %v", x, tree.End(x), below)
			}
			next := x + 1
			for _, child := range tree.Children(x) {
				if child != next {
					t.Fatalf("child %d of %d, but %d follows", child, x, next)
				}
				if parent, ok := tree.Parent(child); !ok || parent != x {
					t.Fatalf("the parent of %d, a child of %d, is %d", child, x, parent)
				}
				if !m.Local(tree.Rank(child), rank) {
					far++
				}
				next = tree.End(child)
			}
			if next != tree.End(x) {
				t.Fatalf("the children of %d end at %d, itself at %d", x, next, tree.End(x))
			}
			if n := len(tree.Children(x)); n > bits.Len(uint(len(clients)))+bits.Len(uint(m.Count())) {
				t.Fatalf("%d children of %d", n, x)
			}
		}
		if slices.Contains(seen, false) || far != m.Count()-1 {
			t.Fatalf("ranks %v, %d messages between %d clients", seen, far, m.Count())
		}
	})
}
