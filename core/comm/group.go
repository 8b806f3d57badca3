// Package comm has groups, communicators, context IDs and Cartesian
// topologies: who the members are, how they are numbered, and which numbers
// keep their traffic apart. Nothing in it communicates.
package comm

import (
	"errors"
	"fmt"
	"slices"
	"sort"
)

// Faults of arguments.
var (
	// ErrGroup is wrapped when a group is missing or does not fit.
	ErrGroup = errors.New("invalid group")
	// ErrRank is wrapped when a rank is outside a group, or listed twice.
	ErrRank = errors.New("invalid rank")
	// ErrRange is wrapped when a range of ranks has a stride that never reaches its end.
	ErrRange = errors.New("invalid range of ranks")
)

// Proc numbers a process among all that this process knows, whatever their
// group: its index in the proc table. The procs of MPI_COMM_WORLD are numbered
// by world rank.
type Proc int32

// Undefined and ProcNull are the values that MPI's ABI gives MPI_UNDEFINED and
// MPI_PROC_NULL.
const (
	Undefined = -32766
	ProcNull  = -3
)

// Group is an ordered set of distinct processes, ranked from 0. It is immutable
// and may be shared; the zero Group is the empty group. A group of regularly
// spaced procs, like the world, takes no table.
type Group struct {
	runs  []run
	size  int
	index []entry // by proc; only of groups of many runs
}

// run is part of a group: n procs from first in steps, of ranks from rank.
type run struct {
	rank, n, step int
	first         Proc
}

type entry struct {
	proc Proc
	rank int32
}

// scan is the number of runs up to which looking through them all is as quick
// as an index, which takes 8 bytes per member.
const scan = 8

// Empty is the group without members.
var Empty = &Group{}

// NewGroup is the group of procs first to first+n-1 in order.
func NewGroup(first Proc, n int) *Group {
	if n <= 0 {
		return Empty
	}
	return &Group{runs: []run{{n: n, step: 1, first: first}}, size: n}
}

// GroupOf is the group of procs in the given order. It is ErrRank if one
// appears twice or is negative.
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

// duplicate gives the place of a value that appears twice in s, or -1.
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

// builder makes a group of procs added one by one.
type builder struct {
	runs []run
	size int
}

func (b *builder) add(p Proc) {
	if len(b.runs) > 0 {
		r := &b.runs[len(b.runs)-1]
		if r.n == 1 {
			r.step = int(p) - int(r.first)
		}
		if int64(p) == int64(r.first)+int64(r.n)*int64(r.step) {
			r.n++
			b.size++
			return
		}
	}
	b.runs = append(b.runs, run{rank: b.size, n: 1, step: 1, first: p})
	b.size++
}

// addRange adds the procs from first to first+n-1, all of them above the last.
func (b *builder) addRange(first Proc, n int) {
	b.add(first)
	if n == 1 {
		return
	}
	if r := &b.runs[len(b.runs)-1]; r.step != 1 {
		if r.n--; r.n == 1 {
			r.step = 1
		}
		b.runs = append(b.runs, run{rank: b.size - 1, n: 1, step: 1, first: first})
	}
	b.runs[len(b.runs)-1].n += n - 1
	b.size += n - 1
}

func (b *builder) group() *Group {
	if b.size == 0 {
		return Empty
	}
	g := &Group{runs: slices.Clip(b.runs), size: b.size}
	if len(g.runs) > scan {
		g.index = make([]entry, 0, g.size)
		for p, r := range g.All() {
			g.index = append(g.index, entry{p, int32(r)})
		}
		slices.SortFunc(g.index, func(a, b entry) int { return int(a.proc) - int(b.proc) })
	}
	return g
}

// All yields the members with their ranks, in rank order.
func (g *Group) All() func(yield func(Proc, int) bool) {
	return func(yield func(Proc, int) bool) {
		for _, r := range g.runs {
			for i := range r.n {
				if !yield(r.first+Proc(i*r.step), r.rank+i) {
					return
				}
			}
		}
	}
}

// Size is the number of members.
func (g *Group) Size() int { return g.size }

// Rank gives the rank of p in g; ok is false if p is not a member.
func (g *Group) Rank(p Proc) (rank int, ok bool) {
	if g.index != nil {
		i := sort.Search(len(g.index), func(i int) bool { return g.index[i].proc >= p })
		if i < len(g.index) && g.index[i].proc == p {
			return int(g.index[i].rank), true
		}
		return Undefined, false
	}
	for i := range g.runs {
		r := &g.runs[i]
		steps := int(p) - int(r.first)
		if r.step != 1 {
			if steps%r.step != 0 {
				continue
			}
			steps /= r.step
		}
		if uint(steps) < uint(r.n) {
			return r.rank + steps, true
		}
	}
	return Undefined, false
}

// At gives the member of the rank; ok is false if there is no such rank.
func (g *Group) At(rank int) (p Proc, ok bool) {
	if uint(rank) >= uint(g.size) {
		return -1, false
	}
	i := 0
	if len(g.runs) > 1 {
		i = sort.Search(len(g.runs), func(i int) bool { return g.runs[i].rank > rank }) - 1
	}
	r := &g.runs[i]
	return r.first + Proc((rank-r.rank)*r.step), true
}

// Procs lists the members in rank order.
func (g *Group) Procs() []Proc {
	procs := make([]Proc, 0, g.size)
	for p := range g.All() {
		procs = append(procs, p)
	}
	return procs
}

// Comparison is the result of comparing groups or communicators, with the
// values of MPI's ABI.
type Comparison int

// The results. Only communicators can be Congruent: of equal groups, but of
// different contexts.
const (
	Identical Comparison = 201 + iota
	Congruent
	Similar
	Unequal
)

// Compare says whether g and h have the same members in the same order
// (Identical), in another order (Similar), or not (Unequal).
func (g *Group) Compare(h *Group) Comparison {
	if g == h {
		return Identical
	}
	if g.size != h.size {
		return Unequal
	}
	result := Identical
	for p, r := range g.All() {
		hr, ok := h.Rank(p)
		if !ok {
			return Unequal
		}
		if hr != r {
			result = Similar
		}
	}
	return result
}

// Translate gives for each rank in g the rank of the same process in h, or
// Undefined; ProcNull stays ProcNull. A rank that g does not have is ErrRank.
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
