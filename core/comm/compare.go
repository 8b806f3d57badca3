package comm

// Comparison is the result of comparing groups or communicators (MPI-4.1, 7.3.1 and 7.4.1), with
// the values of MPI's ABI.
type Comparison int

// The results. Only communicators can be Congruent: of equal groups, but of
// different contexts.
const (
	Identical Comparison = 201 + iota // the same members in the same order; of communicators: the same object
	Congruent                         // communicators of the same groups
	Similar                           // the same members in another order
	Unequal
)

// Compare returns whether g and h have the same members in the same order (Identical), in
// another order (Similar), or not (Unequal).
func (g *Group) Compare(h *Group) Comparison {
	switch {
	case g == h || g.same(h):
		return Identical
	case g.size == h.size && g.count(h) == g.size:
		return Similar
	}
	return Unequal
}

// same reports whether the members and their order are the same, although they may be
// divided into runs differently.
func (g *Group) same(h *Group) bool {
	if g.size != h.size {
		return false
	}
	for i, j, rank := 0, 0, 0; rank < g.size; {
		r, s := &g.runs[i], &h.runs[j]
		a, b := rank-int(r.rank), rank-int(s.rank)
		n := min(int(r.n)-a, int(s.n)-b)
		if r.at(a) != s.at(b) || n > 1 && r.step != s.step {
			return false
		}
		if a+n == int(r.n) {
			i++
		}
		if b+n == int(s.n) {
			j++
		}
		rank += n
	}
	return true
}

func (g *Group) count(h *Group) (n int) {
	m := newMeeting(g, h)
	for k := range g.runs {
		for _, x := range m.of(&g.runs[k]) {
			n += x.n
		}
	}
	return n
}

// CommonMember returns a member that g and h have in common; ok is false if they have none.
func (g *Group) CommonMember(h *Group) (p Proc, ok bool) {
	m := newMeeting(g, h)
	for k := range g.runs {
		if x := m.of(&g.runs[k]); len(x) > 0 {
			return g.runs[k].at(x[0].from), true
		}
	}
	return -1, false
}

// IsSubset reports whether all members of g are members of h.
func (g *Group) IsSubset(h *Group) bool { return g == h || g.count(h) == g.size }
