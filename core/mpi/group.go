package mpi

import (
	"fmt"
	"sync/atomic"

	"github.com/openimpi/impi/core/comm"
)

// Comparison is how two groups or two communicators relate.
type Comparison = comm.Comparison

// The results of comparisons. Groups are never Congruent.
const (
	Identical = comm.Identical // the same members in the same order; of communicators: the same object
	Congruent = comm.Congruent // communicators of the same groups
	Similar   = comm.Similar   // the same members in another order
	Unequal   = comm.Unequal
)

// Range stands for the ranks First, First+Stride, … that do not pass Last.
type Range = comm.Range

// Group is an ordered set of procs, ranked from 0. It does not change, and stays
// what it is when the communicator that it comes from is freed. nil is
// MPI_GROUP_NULL. What it takes does not grow with its size as long as it is made
// of ranges.
type Group struct {
	p     *process // nil of GroupEmpty
	g     *comm.Group
	freed atomic.Bool
}

// GroupEmpty is the group without members. It cannot be freed: Free of it, which
// is right as many operations give it, does nothing.
var GroupEmpty = &Group{g: comm.Empty}

// newGroup makes a group for the program.
func (p *process) newGroup(g *comm.Group) *Group {
	if g.Size() == 0 {
		return GroupEmpty
	}
	return &Group{p: p, g: g}
}

// check refuses groups that cannot be used.
func (g *Group) check() error {
	switch {
	case g == nil:
		return fmt.Errorf("%w: nil, which is MPI_GROUP_NULL", comm.ErrGroup)
	case g.freed.Load():
		return fmt.Errorf("%w: it has been freed", comm.ErrGroup)
	}
	return nil
}

// Check tells whether g can be used: it is ErrGroup for nil and for what has been
// freed, of which Size is 0 and Rank Undefined.
func (g *Group) Check() error { return g.failed("Group.Check", g.check()) }

// failed is failed of the process that g is of.
func (g *Group) failed(fn string, err error) error {
	if err != nil && g != nil && g.p != nil {
		return g.p.failed(fn, err)
	}
	return failed(fn, err)
}

// Free ends the use of g. What was made of it stays.
func (g *Group) Free() error {
	if err := g.check(); err != nil {
		return g.failed("Group.Free", err)
	}
	if g != GroupEmpty && !g.freed.CompareAndSwap(false, true) {
		return g.failed("Group.Free", g.check())
	}
	return nil
}

// Size is the number of members.
func (g *Group) Size() int {
	if g.check() != nil {
		return 0
	}
	return g.g.Size()
}

// Rank is the calling proc's rank, or Undefined if it is not a member.
func (g *Group) Rank() int {
	if g.check() != nil || g.p == nil {
		return Undefined
	}
	rank, _ := g.g.Rank(comm.Proc(g.p.job.Rank))
	return rank
}

// Translate gives for each rank in g the rank of the same proc in h, or
// Undefined. ProcNull stays ProcNull. A rank that g does not have is ErrRank.
func (g *Group) Translate(ranks []int, h *Group) (out []int, err error) {
	if err = checkBoth(g, h); err == nil {
		out, err = g.g.Translate(ranks, h.g)
	}
	return out, g.failed("Group.Translate", err)
}

// Compare says whether g and h have the same members in the same order
// (Identical), in another order (Similar), or not (Unequal).
func (g *Group) Compare(h *Group) (Comparison, error) {
	if err := checkBoth(g, h); err != nil {
		return Unequal, g.failed("Group.Compare", err)
	}
	return g.g.Compare(h.g), nil
}

// Union is all of g in order, then those members of h that g lacks, in h's order.
func (g *Group) Union(h *Group) (*Group, error) {
	return g.with("Group.Union", h, (*comm.Group).Union)
}

// Intersection is the members of g that h has too, in g's order.
func (g *Group) Intersection(h *Group) (*Group, error) {
	return g.with("Group.Intersection", h, (*comm.Group).Intersection)
}

// Difference is the members of g that h lacks, in g's order.
func (g *Group) Difference(h *Group) (*Group, error) {
	return g.with("Group.Difference", h, (*comm.Group).Difference)
}

// Incl is the group whose rank i is g's ranks[i]. It is ErrRank if a rank is
// outside g or listed twice, and ErrArg if there are more ranks than members.
func (g *Group) Incl(ranks []int) (*Group, error) {
	return g.of("Group.Incl", func() (*comm.Group, error) {
		if err := g.fits(ranks); err != nil {
			return nil, err
		}
		return g.g.Incl(ranks)
	})
}

// Excl is g without the listed ranks, in g's order. The errors are those of Incl.
func (g *Group) Excl(ranks []int) (*Group, error) {
	return g.of("Group.Excl", func() (*comm.Group, error) {
		if err := g.fits(ranks); err != nil {
			return nil, err
		}
		return g.g.Excl(ranks)
	})
}

// RangeIncl is Incl of the ranks that the ranges stand for, which are not listed
// one by one. A stride of 0, or one that leads away from the end, is ErrRange
// unless there is only one rank.
func (g *Group) RangeIncl(ranges []Range) (*Group, error) {
	return g.of("Group.RangeIncl", func() (*comm.Group, error) { return g.g.RangeIncl(ranges) })
}

// RangeExcl is Excl of the ranks that the ranges stand for. The errors are those
// of RangeIncl.
func (g *Group) RangeExcl(ranges []Range) (*Group, error) {
	return g.of("Group.RangeExcl", func() (*comm.Group, error) { return g.g.RangeExcl(ranges) })
}

// fits checks how many ranks there are.
func (g *Group) fits(ranks []int) error {
	if len(ranks) > g.g.Size() {
		return fmt.Errorf("%w: %d ranks of a group of %d", ErrArg, len(ranks), g.g.Size())
	}
	return nil
}

// with makes a group of g and h.
func (g *Group) with(fn string, h *Group, f func(a, b *comm.Group) *comm.Group) (*Group, error) {
	if err := checkBoth(g, h); err != nil {
		return nil, g.failed(fn, err)
	}
	p := g.p
	if p == nil {
		p = h.p
	}
	return p.newGroup(f(g.g, h.g)), nil
}

// of makes a group of g.
func (g *Group) of(fn string, f func() (*comm.Group, error)) (*Group, error) {
	if err := g.check(); err != nil {
		return nil, g.failed(fn, err)
	}
	sub, err := f()
	if err != nil {
		return nil, g.failed(fn, err)
	}
	return g.p.newGroup(sub), nil
}

func checkBoth(g, h *Group) error {
	if err := g.check(); err != nil {
		return err
	}
	return h.check()
}

// Group gives the group of c; of an intercommunicator the local one.
func (c *Comm) Group() (*Group, error) {
	if err := c.check(); err != nil {
		return nil, c.failed("Group", err)
	}
	return c.p.newGroup(c.Comm.Group()), nil
}
