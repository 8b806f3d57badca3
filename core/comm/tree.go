package comm

import "math/bits"

// Tree is the structure by which the members of a communicator gather to rank 0 and scatter from
// it: a binomial tree inside each client, with its master as the root, and one of the masters. Its
// nodes are positions: the ranks of the first master's client come first, then those of the
// second's, each in ascending order. The positions below a node follow it directly. Tree is a value
// that shares the Masters.
type Tree struct {
	m *Masters
	// starts are the positions of the masters, and one past the last.
	starts []int
}

// NewTree makes the tree of the members of m.
func NewTree(m *Masters) Tree { return Tree{m: m, starts: m.starts} }

// Clients returns the number of clients that the members belong to.
func (t Tree) Clients() int { return t.m.Count() }

// Rank returns the rank that has a position, the inverse of Position.
func (t Tree) Rank(position int) int {
	n := t.number(position)
	rank, _ := t.m.Locals(n).At(position - t.starts[n])
	return int(rank)
}

// Ranks returns the ranks at positions from up to, but not including, to, in the order of
// positions.
func (t Tree) Ranks(from, to int) *Group {
	b := builder{}
	for n := range t.m.Count() {
		first, last := max(from, t.starts[n]), min(to, t.starts[n+1])
		for _, r := range t.m.Locals(n).runs {
			start := t.starts[n] + int(r.rank)
			i, j := max(first-start, 0), min(last-start, int(r.n))
			if i < j {
				b.addRun(r.part(hits{i, 1, j - i}))
			}
		}
	}
	return b.group()
}

// Position returns the position that a rank has in the tree, the inverse of Rank.
func (t Tree) Position(rank int) int { return t.starts[t.m.Number(rank)] + t.m.LocalIndex(rank) }

func (t Tree) number(position int) int {
	n := 0
	for t.starts[n+1] <= position {
		n++
	}
	return n
}

// Parent returns the position above; ok is false for the root, which is position 0.
func (t Tree) Parent(position int) (parent int, ok bool) {
	n := t.number(position)
	switch place := position - t.starts[n]; {
	case place > 0:
		return t.starts[n] + place&(place-1), true
	case n > 0:
		return t.starts[n&(n-1)], true
	}
	return 0, false
}

// End returns the position after the last of those below position, or after position itself if it
// is a leaf.
func (t Tree) End(position int) int {
	n := t.number(position)
	if place := position - t.starts[n]; place > 0 {
		return min(position+place&-place, t.starts[n+1])
	}
	if n == 0 {
		return t.starts[len(t.starts)-1]
	}
	return t.starts[min(n+n&-n, len(t.starts)-1)]
}

// Children returns the positions directly below position, ascending.
func (t Tree) Children(position int) []int {
	n := t.number(position)
	place := position - t.starts[n]
	size := t.starts[n+1] - t.starts[n]
	below := children(place, size)
	for i := range below {
		below[i] += t.starts[n]
	}
	if place == 0 {
		for _, child := range children(n, len(t.starts)-1) {
			below = append(below, t.starts[child])
		}
	}
	return below
}

func children(i, n int) (below []int) {
	limit := bits.Len(uint(n))
	if i > 0 {
		limit = bits.TrailingZeros(uint(i))
	}
	for k := range limit {
		if child := i + 1<<k; child < n {
			below = append(below, child)
		}
	}
	return below
}
