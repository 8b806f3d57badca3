// Package comm has groups, communicators, context IDs and topologies: who the members are,
// how they are numbered, and which numbers keep their traffic apart. Nothing in it
// communicates.
package comm

import (
	"errors"
	"fmt"
	"slices"
	"sort"
)

// The errors of arguments.
var (
	// ErrGroup is wrapped when a group is missing or does not fit.
	ErrGroup = errors.New("invalid group")
	// ErrRank is wrapped when a rank is outside a group, or listed twice.
	ErrRank = errors.New("invalid rank")
	// ErrRange is wrapped when a range of ranks has a stride that never reaches its end.
	ErrRange = errors.New("invalid range of ranks")
)

// Proc is the number of a process among all processes that this process knows: its index in the
// proc table. The procs of MPI_COMM_WORLD are numbered by world rank.
type Proc int32

// Undefined and ProcNull are the values of MPI_UNDEFINED and MPI_PROC_NULL in MPI's ABI.
const (
	Undefined = -32766
	ProcNull  = -3
)

// Group is an ordered set of distinct processes, ranked from 0 (MPI-4.1, 7.2.1). It is immutable
// and may be shared; the zero Group is the empty group. Its memory and the time of most methods
// grow with the number of its runs of regularly spaced members. The world, ranges of it, and the
// world without a few members have few runs.
type Group struct {
	runs  []run
	size  int
	index *index // set for groups of many runs
}

// index has the runs of a group in the order of their smallest members.
type index struct {
	order []int32
	reach []Proc // the largest member of this run and those before it
}

// scan is the number of runs up to which looking at all of them is as fast as an index.
const scan = 8

// Empty is the group without members.
var Empty = &Group{}

// NewGroup returns the group of procs first to first+n-1 in order.
func NewGroup(first Proc, n int) *Group {
	if n <= 0 {
		return Empty
	}
	return &Group{runs: []run{{n: int32(n), step: 1, first: int32(first)}}, size: n}
}

// GroupOf returns the group of procs in the given order. The error is ErrRank if one appears twice
// or is negative.
func GroupOf(procs []Proc) (*Group, error) {
	if i := duplicate(procs); i >= 0 {
		return nil, fmt.Errorf("comm: %w: proc %d appears twice", ErrRank, procs[i])
	}
	b := builder{}
	for i, p := range procs {
		if p < 0 {
			return nil, fmt.Errorf("comm: %w: proc %d at %d", ErrRank, p, i)
		}
		b.add(p)
	}
	return b.group(), nil
}

// duplicate returns the place of a value that appears twice in s, or -1.
func duplicate[T int | Proc](s []T) int {
	sorted := slices.Clone(s)
	slices.Sort(sorted)
	for i := 1; i < len(sorted); i++ {
		if sorted[i] == sorted[i-1] {
			return slices.Index(s, sorted[i])
		}
	}
	return -1
}

// All yields the members with their ranks, in rank order.
func (g *Group) All() func(yield func(Proc, int) bool) {
	return func(yield func(Proc, int) bool) {
		for k := range g.runs {
			r := &g.runs[k]
			for i := range int(r.n) {
				if !yield(r.at(i), int(r.rank)+i) {
					return
				}
			}
		}
	}
}

// Size returns the number of members.
func (g *Group) Size() int { return g.size }

// Rank returns the rank of p in g; ok is false if p is not a member.
func (g *Group) Rank(p Proc) (rank int, ok bool) {
	if g.index != nil {
		return g.find(p)
	}
	for i := range g.runs {
		if at, ok := g.runs[i].index(p); ok {
			return int(g.runs[i].rank) + at, true
		}
	}
	return Undefined, false
}

// find is Rank for a group with an index. A run that begins below p may contain it only as
// long as some run up to there reaches p.
func (g *Group) find(p Proc) (rank int, ok bool) {
	x := g.index
	i := sort.Search(len(x.order), func(i int) bool { return g.runs[x.order[i]].low() > p })
	for i--; i >= 0 && x.reach[i] >= p; i-- {
		r := &g.runs[x.order[i]]
		if at, ok := r.index(p); ok {
			return int(r.rank) + at, true
		}
	}
	return Undefined, false
}

// At returns the member with that rank; ok is false if there is no such rank.
func (g *Group) At(rank int) (p Proc, ok bool) {
	if uint(rank) >= uint(g.size) {
		return -1, false
	}
	r := &g.runs[g.run(rank)]
	return r.at(rank - int(r.rank)), true
}

// run returns the index of the run that has a rank, which must exist.
func (g *Group) run(rank int) int {
	if len(g.runs) == 1 {
		return 0
	}
	return sort.Search(len(g.runs), func(i int) bool { return int(g.runs[i].rank) > rank }) - 1
}

// Map returns the group of f(p) for each member p. f must map no two members to the same
// proc.
func (g *Group) Map(f func(Proc) Proc) *Group {
	var b builder
	for p := range g.All() {
		b.add(f(p))
	}
	return b.group()
}

// Translate returns for each rank in g the rank of the same process in h, or Undefined; ProcNull
// stays ProcNull (MPI-4.1, 7.3.1). The error is ErrRank if a rank is not in g.
func (g *Group) Translate(ranks []int, h *Group) ([]int, error) {
	if h == nil {
		return nil, fmt.Errorf("comm: %w: none given", ErrGroup)
	}
	out := make([]int, len(ranks))
	for i, r := range ranks {
		if r == ProcNull {
			out[i] = ProcNull
			continue
		}
		p, ok := g.At(r)
		if !ok {
			return nil, fmt.Errorf("comm: %w: %d at %d, the group has %d members", ErrRank, r, i, g.size)
		}
		out[i], _ = h.Rank(p)
	}
	return out, nil
}
