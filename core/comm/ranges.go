package comm

import "fmt"

// Range stands for the ranks First, First+Stride, … up to Last, which need not be one of
// them. If First equals Last the stride does not matter.
type Range struct{ First, Last, Stride int }

// RangeIncl is Incl for the ranks in the ranges (MPI-4.1, 7.3.2). The error is ErrRange for a
// stride of 0, or one that leads away from Last.
func (g *Group) RangeIncl(ranges []Range) (*Group, error) {
	list, err := g.checkRanges(ranges)
	if err != nil {
		return nil, err
	}
	return g.pick(list), nil
}

// RangeExcl is Excl for the ranks in the ranges. The errors are those of RangeIncl.
func (g *Group) RangeExcl(ranges []Range) (*Group, error) {
	list, err := g.checkRanges(ranges)
	if err != nil {
		return nil, err
	}
	return g.without(list), nil
}

// checkRanges returns the ranks as a group. g must have all of them.
func (g *Group) checkRanges(ranges []Range) (*Group, error) {
	b := builder{}
	for i, r := range ranges {
		ranks, err := r.run(g.size)
		if err != nil {
			return nil, fmt.Errorf("comm: range %d: %w", i, err)
		}
		b.addRun(ranks)
	}
	list := b.group()
	if rank, twice := list.repeats(g.size); twice {
		return nil, fmt.Errorf("comm: %w: %d is listed twice", ErrRank, rank)
	}
	return list, nil
}

func (r Range) run(size int) (run, error) {
	steps, err := r.steps()
	if err != nil {
		return run{}, err
	}
	last := r.First + int(steps)*r.Stride // fits in an int, as it is between the two ends
	if uint(r.First) >= uint(size) || uint(last) >= uint(size) {
		return run{}, fmt.Errorf("%w: %d to %d, the group has %d members", ErrRank, r.First, r.Last, size)
	}
	if steps == 0 {
		return run{first: int32(r.First), step: 1, n: 1}, nil
	}
	return run{first: int32(r.First), step: int32(r.Stride), n: int32(steps) + 1}, nil
}

// steps returns how many times the stride is added. The distance between any two ints fits
// into a uint.
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

// repeats returns a member below size that is in the list more than once, if there is one.
// It compares runs with each other, or uses a bit set of members if that is cheaper.
func (g *Group) repeats(size int) (p Proc, twice bool) {
	if len(g.runs)*len(g.runs) > scan*scan+size {
		return g.repeatsIn(make([]uint64, size/64+1))
	}
	for i := range g.runs {
		for k := range i {
			if h := g.runs[i].common(&g.runs[k]); h.n > 0 {
				return g.runs[i].at(h.from), true
			}
		}
	}
	return -1, false
}

func (g *Group) repeatsIn(seen []uint64) (p Proc, twice bool) {
	for p := range g.All() {
		if seen[p/64]>>(p%64)&1 != 0 {
			return p, true
		}
		seen[p/64] |= 1 << (p % 64)
	}
	return -1, false
}
