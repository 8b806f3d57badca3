package comm

import (
	"fmt"
	"slices"
)

// Union returns the group of all members of g in order, then those members of h that are not in g,
// in h's order (MPI-4.1, 7.3.2).
func (g *Group) Union(h *Group) *Group {
	switch {
	case h.size == 0 || g == h:
		return g
	case g.size == 0:
		return h
	}
	more := h.Difference(g)
	if more.size == 0 {
		return g
	}
	b := builder{runs: slices.Clone(g.runs), size: g.size}
	for _, r := range more.runs {
		b.addRun(r)
	}
	return b.group()
}

// Intersection returns the group of the members of g that are also in h, in g's order (MPI-4.1,
// 7.3.2).
func (g *Group) Intersection(h *Group) *Group {
	b, m := builder{}, newMeeting(g, h)
	for k := range g.runs {
		r := &g.runs[k]
		for _, h := range m.of(r) {
			b.addRun(r.part(h))
		}
	}
	return g.or(&b)
}

// Difference returns the group of the members of g that are not in h, in g's order.
func (g *Group) Difference(h *Group) *Group {
	b, m := builder{}, newMeeting(g, h)
	for k := range g.runs {
		r := &g.runs[k]
		next := 0
		for _, h := range m.of(r) {
			b.addRun(r.part(hits{next, 1, h.from - next}))
			b.between(r, h)
			next = h.last() + 1
		}
		b.addRun(r.part(hits{next, 1, int(r.n) - next}))
	}
	return g.or(&b)
}

// between adds the members of r that lie between hits of one sequence.
func (b *builder) between(r *run, h hits) {
	if h.step == 1 {
		return
	}
	if h.step == 2 {
		b.addRun(r.part(hits{h.from + 1, 2, h.n - 1}))
		return
	}
	for i := range h.n - 1 {
		b.addRun(r.part(hits{h.from + i*h.step + 1, 1, h.step - 1}))
	}
}

func (r *run) part(h hits) run {
	return run{first: int32(r.at(h.from)), step: r.step * int32(h.step), n: int32(h.n)}
}

// or returns the group that b has built of members of g, or g itself if that is all of them.
func (g *Group) or(b *builder) *Group {
	if b.size == g.size {
		return g
	}
	return b.group()
}

// Incl returns the group whose rank i is g's ranks[i] (MPI-4.1, 7.3.2). The error is ErrRank if a
// rank is not in g or listed twice.
func (g *Group) Incl(ranks []int) (*Group, error) {
	list, err := g.checkRanks(ranks)
	if err != nil {
		return nil, err
	}
	return g.pick(list), nil
}

// Excl returns g without the listed ranks, in g's order. The errors are those of Incl.
func (g *Group) Excl(ranks []int) (*Group, error) {
	list, err := g.checkRanks(ranks)
	if err != nil {
		return nil, err
	}
	return g.without(list), nil
}

func (g *Group) checkRanks(ranks []int) (*Group, error) {
	b := builder{}
	for i, r := range ranks {
		if uint(r) >= uint(g.size) {
			return nil, fmt.Errorf("comm: %w: %d at %d, the group has %d members", ErrRank, r, i, g.size)
		}
		b.add(Proc(r))
	}
	if i := duplicate(ranks); i >= 0 {
		return nil, fmt.Errorf("comm: %w: %d is listed twice", ErrRank, ranks[i])
	}
	return b.group(), nil
}

// Select returns the members of g whose ranks are the members of list, in its order. The error is
// ErrRank if a rank is not in g. If list has all ranks in order the result is g itself.
func (g *Group) Select(list *Group) (*Group, error) {
	if list.size > 0 {
		if low, high := list.ends(); low < 0 || int(high) >= g.size {
			return nil, fmt.Errorf("comm: %w: not all of %d ranks are among the %d of the group", ErrRank, list.size, g.size)
		}
	}
	if list.size == g.size && list.same(NewGroup(0, g.size)) {
		return g, nil
	}
	return g.pick(list), nil
}

// Ranks returns the ranks in h of the members of g, all of which are members of h.
func (g *Group) Ranks(h *Group) *Group {
	b := builder{}
	for p := range g.All() {
		if r, ok := h.Rank(p); ok {
			b.add(Proc(r))
		}
	}
	return b.group()
}

// pick returns the members of g whose ranks are the members of list, in its order.
func (g *Group) pick(list *Group) *Group {
	if g.numbered() {
		return list
	}
	b := builder{}
	for k := range list.runs {
		r := &list.runs[k]
		for i := 0; i < int(r.n); {
			rank := int(r.at(i))
			in := &g.runs[g.run(rank)]
			first := run{first: in.rank, step: 1, n: in.n}
			low, high := first.ends()
			_, last := (&run{first: int32(rank), step: r.step, n: r.n - int32(i)}).between(low, high)
			n := min(last+1, int(r.n)-i)
			b.addRun(in.part(hits{rank - int(in.rank), int(r.step), n}))
			i += n
		}
	}
	return b.group()
}

// numbered reports whether the members are numbered by their ranks, as those of the world are.
func (g *Group) numbered() bool {
	return len(g.runs) == 1 && g.runs[0].first == 0 && (g.runs[0].step == 1 || g.size == 1)
}

func (g *Group) without(list *Group) *Group {
	all := NewGroup(0, g.size)
	rest := all.Difference(list)
	if rest == all {
		return g
	}
	return g.pick(rest)
}
