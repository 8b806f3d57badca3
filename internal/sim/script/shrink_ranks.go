package script

import "slices"

// leaveOutRanks takes ranks out, with all their messages.
func (s *shrinker) leaveOutRanks() {
	for r := s.best.Procs - 1; r >= 0 && s.best.Procs > 1; r-- {
		s.try(withoutRank(s.best, r))
	}
}

// withoutRank is p for one rank less; those above it move down. Grids that have no
// place any more go with all that needs them.
func withoutRank(p *Program, rank int) *Program {
	var gone []unit
	for _, m := range p.Messages {
		if m.From == rank || m.To == rank {
			gone = append(gone, unit{m.ID, never, never})
		}
	}
	model := newComms(p.Procs)
	smaller := newComms(p.Procs - 1)
	moved := make([]Step, len(p.Steps))
	for i, s := range p.Steps {
		moved[i] = lower(s, rank, model)
		_, _, err := model.apply(s)
		if err != nil {
			return nil
		}
		if moved[i] == nil || refused(moved[i], smaller) {
			gone = append(gone, unit{0, i, never})
			moved[i] = s
		}
	}
	q := without(&Program{Procs: p.Procs - 1, Messages: slices.Clone(p.Messages), Steps: moved}, gone)
	for i := range q.Messages {
		m := &q.Messages[i]
		m.From, m.To = down(m.From, rank), down(m.To, rank)
	}
	return q
}

// refused tells whether a step cannot be with the communicators that there are.
func refused(s Step, c *comms) bool {
	_, _, err := c.apply(s)
	return err != nil
}

func down(r, rank int) int {
	if r > rank {
		return r - 1
	}
	return r
}

// lower is a step without a rank; nil if nothing is left of it. c has the
// communicators before it, with the rank.
func lower(s Step, rank int, c *comms) Step {
	switch s := s.(type) {
	case Split:
		return lowerSplit(s, rank, c.byName[s.Comm])
	case Cart:
		return lowerCart(s, rank, c.byName[s.Comm])
	case Collective:
		return lowerCollective(s, rank, c.byName[s.Comm])
	case Lone:
		if s.Source == rank {
			return nil
		}
		s.Source = down(s.Source, rank)
		return lowerAlone(s, s.Rank, rank, func(r int) Step { s.Rank = r; return s })
	case Wait: // the requests of the rank go with its messages
		return Wait{down(s.Rank, rank), s.How, s.Reqs}
	case Null:
		return lowerAlone(s, s.Rank, rank, func(r int) Step { s.Rank = r; return s })
	case Pause:
		return lowerAlone(s, s.Rank, rank, func(r int) Step { s.Rank = r; return s })
	case Attach:
		return lowerAlone(s, s.Rank, rank, func(r int) Step { s.Rank = r; return s })
	case Detach:
		return lowerAlone(s, s.Rank, rank, func(r int) Step { s.Rank = r; return s })
	}
	return s
}

// lowerAlone is for a step of the rank of.
func lowerAlone(s Step, of, rank int, at func(int) Step) Step {
	if of == rank {
		return nil
	}
	return at(down(of, rank))
}

// lowerSplit takes a member out, and the names of communicators that were only
// its own.
func lowerSplit(s Split, rank int, g *group) Step {
	if !g.has(rank) {
		return s
	}
	if len(g.members) == 1 {
		return nil
	}
	i := g.rank(rank)
	next := Split{Comm: s.Comm, Colors: slices.Delete(slices.Clone(s.Colors), i, i+1), Keys: slices.Delete(slices.Clone(s.Keys), i, i+1)}
	different := slices.Clone(s.Colors)
	slices.Sort(different)
	different = slices.DeleteFunc(slices.Compact(different), func(color int) bool { return color == NoColor })
	for k, color := range different {
		if slices.Contains(next.Colors, color) {
			next.New = append(next.New, s.New[k])
		}
	}
	return next
}

// lowerCart makes the grid smaller by a place in its largest dimension if it loses
// a member.
func lowerCart(s Cart, rank int, g *group) Step {
	if i := g.rank(rank); i < 0 || i >= (&grid{s.Dims, s.Periodic}).size() {
		return s
	}
	s.Dims = slices.Clone(s.Dims)
	at := slices.Index(s.Dims, slices.Max(s.Dims))
	if s.Dims[at]--; s.Dims[at] == 0 {
		return nil
	}
	return s
}

// lowerCollective takes a member's counts out; a root that goes hands over to
// another member.
func lowerCollective(s Collective, rank int, g *group) Step {
	i, n := g.rank(rank), len(g.members)
	if i >= 0 && n == 1 {
		return nil
	}
	if s.Call.rooted() && s.Root == rank {
		s.Root = g.members[(i+1)%n]
	}
	s.Root = down(s.Root, rank)
	if i < 0 || s.Call.counts(n) != len(s.Counts) || s.Call.counts(2) < 2 {
		return s
	}
	var counts []int
	for k, count := range s.Counts {
		if k%n != i && (s.Call != Alltoallv || k/n != i) {
			counts = append(counts, count)
		}
	}
	s.Counts = counts
	return s
}
