package agree

import (
	"fmt"
	"slices"
	"testing"
)

// TestTree wants, for each set of failures in small groups, that parents and children fit together,
// that parents lead to the root, and that no more failures change a member's parent but its own.
func TestTree(t *testing.T) {
	for _, sites := range [][]int{{0}, {0, 0, 0, 0, 0, 0, 0}, {0, 1, 2, 3}, {0, 0, 0, 1, 1, 1, 1}, {2, 9, 2, 9, 9, 2, 2, 9}, {0, 1, 1, 1, 1, 1, 0}} {
		for fan := 1; fan <= 3; fan++ {
			t.Run(fmt.Sprint(sites, fan), func(t *testing.T) {
				tr := newTree(sites, fan)
				for mask := range uint64(1)<<len(sites) - 1 {
					checkTree(t, tr, (Set{[]uint64{mask}}).trim(), len(sites))
				}
			})
		}
	}
}

func checkTree(t *testing.T, tr *tree, failed Set, size int) {
	t.Helper()
	root := failed.firstNot()
	for r := range size {
		if failed.Has(r) {
			continue
		}
		p := tr.parent(r, failed)
		if p > r || failed.Has(p) || (p == r) != (r == root) {
			t.Fatalf("failed %v: the parent of %d is %d", failed, r, p)
		}
		var want []int
		for c := range size {
			if !failed.Has(c) && c != r && tr.parent(c, failed) == r {
				want = append(want, c)
			}
		}
		if got := slices.Sorted(slices.Values(tr.children(r, failed))); !slices.Equal(got, want) {
			t.Fatalf("failed %v: the children of %d are %v, want %v", failed, r, got, want)
		}
		if tr.site[p] != tr.site[r] && (p != root || tr.leader(tr.site[r], failed) != r) {
			t.Fatalf("failed %v: member %d sends to another site, to %d", failed, r, p)
		}
		for more := range size {
			if more != p && more != r && !failed.Has(more) && p != r {
				if got := tr.parent(r, failed.union(SetOf(more))); got != p {
					t.Fatalf("failed %v, then %d: the parent of %d was %d and is %d", failed, more, r, p, got)
				}
			}
		}
	}
}

// TestTreeIsShallow wants as few steps to the root as a heap has, and one between sites.
func TestTreeIsShallow(t *testing.T) {
	const size, each = 4096, 512
	sites := make([]int, size)
	for i := range sites {
		sites[i] = i / each
	}
	tr := newTree(sites, 2)
	for r := range size {
		steps, far := 0, 0
		for at := r; at != 0; steps++ {
			p := tr.parent(at, Set{})
			if sites[p] != sites[at] {
				far++
			}
			at = p
		}
		if steps > 10 || far > 1 {
			t.Fatalf("member %d is %d steps from the root, %d of them between sites", r, steps, far)
		}
	}
}
