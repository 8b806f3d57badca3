package comm

import "fmt"

// Union is all of g in order, then those members of h that g lacks, in h's order.
func (g *Group) Union(h *Group) *Group {
	if h.size == 0 || g == h {
		return g
	}
	b := builder{}
	for p := range g.All() {
		b.add(p)
	}
	for p := range h.All() {
		if _, in := g.Rank(p); !in {
			b.add(p)
		}
	}
	return b.group()
}

// Intersection is the members of g that h has too, in g's order.
func (g *Group) Intersection(h *Group) *Group { return g.filter(h, true) }

// Difference is the members of g that h lacks, in g's order.
func (g *Group) Difference(h *Group) *Group { return g.filter(h, false) }

func (g *Group) filter(h *Group, want bool) *Group {
	b := builder{}
	for p := range g.All() {
		if _, in := h.Rank(p); in == want {
			b.add(p)
		}
	}
	return b.group()
}

// Meets gives a member that g and h have in common; ok is false if they have none.
func (g *Group) Meets(h *Group) (p Proc, ok bool) {
	for p := range g.All() {
		if _, in := h.Rank(p); in {
			return p, true
		}
	}
	return -1, false
}

// Incl is the group whose rank i is g's ranks[i]. It is ErrRank if a rank is
// outside g or listed twice.
func (g *Group) Incl(ranks []int) (*Group, error) {
	if err := g.checkRanks(ranks); err != nil {
		return nil, err
	}
	b := builder{}
	for _, r := range ranks {
		p, _ := g.At(r)
		b.add(p)
	}
	return b.group(), nil
}

// Excl is g without the listed ranks, in g's order. The errors are those of Incl.
func (g *Group) Excl(ranks []int) (*Group, error) {
	if err := g.checkRanks(ranks); err != nil {
		return nil, err
	}
	if len(ranks) == 0 {
		return g, nil
	}
	out := make([]bool, g.size)
	for _, r := range ranks {
		out[r] = true
	}
	b := builder{}
	for p, r := range g.All() {
		if !out[r] {
			b.add(p)
		}
	}
	return b.group(), nil
}

func (g *Group) checkRanks(ranks []int) error {
	for i, r := range ranks {
		if uint(r) >= uint(g.size) {
			return fmt.Errorf("comm: %w: %d at %d, the group has %d members", ErrRank, r, i, g.size)
		}
	}
	if i := duplicate(ranks); i >= 0 {
		return fmt.Errorf("comm: %w: %d is listed twice", ErrRank, ranks[i])
	}
	return nil
}

// Range stands for the ranks First, First+Stride, … that do not pass Last. Last
// need not be among them. With First equal to Last the stride does not matter.
type Range struct{ First, Last, Stride int }

// expand lists the ranks of all ranges, all of which g must have.
func (g *Group) expand(ranges []Range) ([]int, error) {
	var ranks []int
	for i, r := range ranges {
		steps, err := r.steps()
		if err != nil {
			return nil, fmt.Errorf("comm: range %d: %w", i, err)
		}
		last := r.First + int(steps)*r.Stride // between the two ends, so it is an int
		if size := uint(g.size); uint(r.First) >= size || uint(last) >= size {
			return nil, fmt.Errorf("comm: range %d: %w: %d to %d, the group has %d members", i, ErrRank, r.First, r.Last, g.size)
		}
		for s := range int(steps) + 1 {
			ranks = append(ranks, r.First+s*r.Stride)
		}
	}
	return ranks, nil
}

// steps is how often the stride is taken. Unsigned numbers hold the distance
// between any two ints.
func (r Range) steps() (uint, error) {
	switch {
	case r.First == r.Last:
		return 0, nil
	case r.Stride == 0:
		return 0, fmt.Errorf("%w: stride 0 from %d to %d", ErrRange, r.First, r.Last)
	case (r.Last > r.First) != (r.Stride > 0):
		return 0, fmt.Errorf("%w: stride %d leads away from %d", ErrRange, r.Stride, r.Last)
	case r.Stride > 0:
		return (uint(r.Last) - uint(r.First)) / uint(r.Stride), nil
	}
	return (uint(r.First) - uint(r.Last)) / -uint(r.Stride), nil
}

// RangeIncl is Incl of the ranks that the ranges stand for. A stride of 0, or
// one that leads away from the end, is ErrRange.
func (g *Group) RangeIncl(ranges []Range) (*Group, error) {
	ranks, err := g.expand(ranges)
	if err != nil {
		return nil, err
	}
	return g.Incl(ranks)
}

// RangeExcl is Excl of the ranks that the ranges stand for. The errors are those
// of RangeIncl.
func (g *Group) RangeExcl(ranges []Range) (*Group, error) {
	ranks, err := g.expand(ranges)
	if err != nil {
		return nil, err
	}
	return g.Excl(ranks)
}
