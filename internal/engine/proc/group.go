package proc

import (
	"fmt"
	"sync/atomic"

	"github.com/openimpi/impi/core/comm"
)

// Group is an ordered set of procs, ranked from 0. It does not change, even when the communicator
// that it comes from is freed. nil is MPI_GROUP_NULL. Its memory does not grow with its size as
// long as it consists of ranges.
type Group struct {
	p     *Process // nil for GroupEmpty
	g     *comm.Group
	freed atomic.Bool
}

// GroupEmpty is the group without members. Free of it does nothing, and is no error, since many
// operations return it.
var GroupEmpty = &Group{g: comm.Empty}

// NewGroup returns a handle for the program to free. All groups without members are GroupEmpty.
func (p *Process) NewGroup(g *comm.Group) *Group {
	if g.Size() == 0 {
		return GroupEmpty
	}
	return &Group{p: p, g: g}
}

// Usable returns an error if g is nil or was freed.
func (g *Group) Usable() error {
	switch {
	case g == nil:
		return fmt.Errorf("%w: nil, which is MPI_GROUP_NULL", comm.ErrGroup)
	case g.freed.Load():
		return fmt.Errorf("%w: it has been freed", comm.ErrGroup)
	}
	return nil
}

// Failed is Process.Failed for the process that g belongs to.
func (g *Group) Failed(fn string, err error) error {
	if err != nil && g != nil && g.p != nil {
		return g.p.Failed(fn, err)
	}
	return Failed(fn, err)
}

func (g *Group) Free() error {
	if err := g.Usable(); err != nil {
		return err
	}
	if g != GroupEmpty && !g.freed.CompareAndSwap(false, true) {
		return g.Usable()
	}
	return nil
}

func (g *Group) Size() int {
	if g.Usable() != nil {
		return 0
	}
	return g.g.Size()
}

func (g *Group) Rank() int {
	if g.Usable() != nil || g.p == nil {
		return Undefined
	}
	rank, _ := g.g.Rank(comm.Proc(g.p.Job.Rank))
	return rank
}

func (g *Group) Translate(ranks []int, h *Group) (out []int, err error) {
	if err = checkBoth(g, h); err == nil {
		out, err = g.g.Translate(ranks, h.g)
	}
	return out, err
}

func (g *Group) Compare(h *Group) (comm.Comparison, error) {
	if err := checkBoth(g, h); err != nil {
		return comm.Unequal, err
	}
	return g.g.Compare(h.g), nil
}

func (g *Group) Union(h *Group) (*Group, error) {
	return g.with(h, (*comm.Group).Union)
}

func (g *Group) Intersection(h *Group) (*Group, error) {
	return g.with(h, (*comm.Group).Intersection)
}

func (g *Group) Difference(h *Group) (*Group, error) {
	return g.with(h, (*comm.Group).Difference)
}

func (g *Group) Incl(ranks []int) (*Group, error) {
	return g.chosen(ranks, (*comm.Group).Incl)
}

func (g *Group) Excl(ranks []int) (*Group, error) {
	return g.chosen(ranks, (*comm.Group).Excl)
}

func (g *Group) RangeIncl(ranges []comm.Range) (*Group, error) {
	return of(g, ranges, (*comm.Group).RangeIncl)
}

func (g *Group) RangeExcl(ranges []comm.Range) (*Group, error) {
	return of(g, ranges, (*comm.Group).RangeExcl)
}

func (g *Group) chosen(ranks []int, f func(*comm.Group, []int) (*comm.Group, error)) (*Group, error) {
	if g.Usable() == nil && len(ranks) > g.g.Size() {
		return nil, fmt.Errorf("%w: %d ranks of a group of %d", ErrArg, len(ranks), g.g.Size())
	}
	return of(g, ranks, f)
}

func of[T any](g *Group, by T, f func(*comm.Group, T) (*comm.Group, error)) (*Group, error) {
	if err := g.Usable(); err != nil {
		return nil, err
	}
	sub, err := f(g.g, by)
	if err != nil {
		return nil, err
	}
	return g.p.NewGroup(sub), nil
}

func (g *Group) with(h *Group, f func(a, b *comm.Group) *comm.Group) (*Group, error) {
	if err := checkBoth(g, h); err != nil {
		return nil, err
	}
	p := g.p
	if p == nil {
		p = h.p
	}
	return p.NewGroup(f(g.g, h.g)), nil
}

func checkBoth(g, h *Group) error {
	if err := g.Usable(); err != nil {
		return err
	}
	return h.Usable()
}

func (c *Comm) Group() (*Group, error) {
	if err := c.Usable(); err != nil {
		return nil, err
	}
	return c.p.NewGroup(c.Comm.Group()), nil
}

// Members returns the procs of the group by rank. g must be usable.
func (g *Group) Members() *comm.Group { return g.g }
