package mpi

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/openimpi/impi/core/mpierr"
)

// classed is an error unless err is of the class.
func classed(what string, err error, want mpierr.Class) error {
	if got := ErrorClass(err); got != want {
		return fmt.Errorf("%s: %v is of class %v, want %v", what, err, got, want)
	}
	return nil
}

// ranksOf returns the ranks in c of the members of g.
func ranksOf(c *Comm, g *Group) ([]int, error) {
	all, err := c.Group()
	if err != nil {
		return nil, err
	}
	ranks := make([]int, g.Size())
	for i := range ranks {
		ranks[i] = i
	}
	return g.Translate(ranks, all)
}

// is is an error unless g has the members of c with these ranks, in this order.
func is(what string, c *Comm, g *Group, err error, want ...int) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	got, err := ranksOf(c, g)
	if err != nil || !slices.Equal(got, want) {
		return fmt.Errorf("%s: ranks %v, %v; want %v", what, got, err, want)
	}
	if at := slices.Index(want, c.Rank()); at != g.Rank() && (at >= 0 || g.Rank() != Undefined) {
		return fmt.Errorf("%s: own rank %d, want %d", what, g.Rank(), at)
	}
	return nil
}

func TestGroupRows(t *testing.T) {
	layout{procs: 6, client: func(r int) int { return r / 3 }}.run(t, func(t *testing.T, c *Comm) error {
		world, err := c.Group()
		if err != nil {
			return err
		}
		odd, err1 := world.Incl([]int{5, 1, 3})
		low, err2 := world.RangeIncl([]Range{{First: 0, Last: 3, Stride: 1}})
		if err := errors.Join(err1, err2, is("world", c, world, nil, 0, 1, 2, 3, 4, 5)); err != nil {
			return err
		}
		union, err1 := odd.Union(low)
		both, err2 := odd.Intersection(low)
		rest, err3 := odd.Difference(low)
		but, err4 := world.Excl([]int{4, 0})
		ranged, err5 := world.RangeExcl([]Range{{First: 4, Last: 1, Stride: -3}, {First: 2, Last: 2, Stride: 0}})
		none, err6 := world.Excl(nil)
		out, err7 := odd.Translate([]int{0, ProcNull, 2, 0}, low)
		return errors.Join(
			is("incl", c, odd, nil, 5, 1, 3),
			is("range_incl", c, low, nil, 0, 1, 2, 3),
			is("union", c, union, err1, 5, 1, 3, 0, 2),
			is("intersection", c, both, err2, 1, 3),
			is("difference", c, rest, err3, 5),
			is("excl", c, but, err4, 1, 2, 3, 5),
			is("range_excl", c, ranged, err5, 0, 3, 5),
			is("excl of nothing", c, none, err6, 0, 1, 2, 3, 4, 5),
			err7, same("translate", out, []int{Undefined, ProcNull, 3, Undefined}),
			compared(odd, union, Unequal), compared(world, none, Identical), compared(world, but, Unequal),
			backwards(world), consistent(world, odd, low),
		)
	})
}

func compared(g, h *Group, want Comparison) error {
	got, err := g.Compare(h)
	return errors.Join(err, expect("comparison", got, want))
}

// backwards is Similar to the world.
func backwards(world *Group) error {
	g, err := world.RangeIncl([]Range{{First: world.Size() - 1, Last: 0, Stride: -1}})
	if err != nil {
		return err
	}
	return compared(g, world, Similar)
}

// consistent: the groups are freed, and what was made of them and the world stay.
func consistent(world, a, b *Group) error {
	u, err := a.Union(b)
	if err := errors.Join(err, a.Free(), b.Free()); err != nil {
		return err
	}
	return errors.Join(expect("size of a union of freed groups", u.Size(), 5), expect("size of the world", world.Size(), 6),
		classed("second free", a.Free(), mpierr.Group))
}

// Groups live longer than the communicators that they are of.
func TestGroupOutlivesCommunicator(t *testing.T) {
	layout{procs: 2}.run(t, func(t *testing.T, c *Comm) error {
		d, err := c.Dup()
		if err != nil {
			return err
		}
		g, err := d.Group()
		if err := errors.Join(err, d.Free()); err != nil {
			return err
		}
		_, err = d.Group()
		return errors.Join(is("group of a freed communicator", c, g, nil, 0, 1), classed("group of it now", err, mpierr.Comm), g.Free())
	})
}

func TestGroupEmpty(t *testing.T) {
	layout{procs: 2}.run(t, func(t *testing.T, c *Comm) error {
		world, err := c.Group()
		if err != nil {
			return err
		}
		var all []error
		for what, make := range map[string]func() (*Group, error){
			"incl of nothing":       func() (*Group, error) { return world.Incl(nil) },
			"excl of all":           func() (*Group, error) { return world.Excl([]int{1, 0}) },
			"range_excl of all":     func() (*Group, error) { return world.RangeExcl([]Range{{First: 0, Last: 1, Stride: 1}}) },
			"itself without itself": func() (*Group, error) { return world.Difference(world) },
			"with the empty one":    func() (*Group, error) { return GroupEmpty.Intersection(world) },
			"incl of the empty one": func() (*Group, error) { return GroupEmpty.Incl(nil) },
		} {
			g, err := make()
			if err != nil || g != GroupEmpty || g.Size() != 0 || g.Rank() != Undefined {
				all = append(all, fmt.Errorf("%s: %v, %v", what, g, err))
			}
			all = append(all, g.Free(), GroupEmpty.Check(), compared(g, GroupEmpty, Identical)) // it may be freed
		}
		u, err := GroupEmpty.Union(world)
		out, err2 := GroupEmpty.Translate(nil, world)
		undefined, err3 := world.Translate([]int{1}, GroupEmpty)
		return errors.Join(append(all, is("union", c, u, err, 0, 1), err2, err3, expect("nothing", len(out), 0),
			same("in the empty group", undefined, []int{Undefined}), compared(world, GroupEmpty, Unequal))...)
	})
}

// TestGroupErrors has the errors of the table's rows.
func TestGroupErrors(t *testing.T) {
	layout{procs: 3}.run(t, func(t *testing.T, c *Comm) error {
		world, err := c.Group()
		if err != nil {
			return err
		}
		freed, err := world.Incl([]int{0})
		if err := errors.Join(err, freed.Free()); err != nil {
			return err
		}
		var null *Group
		var all []error
		for _, g := range []*Group{null, freed} {
			all = append(all,
				classed("check", g.Check(), mpierr.Group), expect("size", g.Size(), 0), expect("rank", g.Rank(), Undefined),
				classed("free", g.Free(), mpierr.Group),
				classed("translate", second(g.Translate(nil, world)), mpierr.Group), classed("translate to it", second(world.Translate(nil, g)), mpierr.Group),
				classed("compare", second(g.Compare(world)), mpierr.Group), classed("compare with it", second(world.Compare(g)), mpierr.Group),
				classed("union", second(g.Union(world)), mpierr.Group), classed("union with it", second(world.Union(g)), mpierr.Group),
				classed("intersection", second(world.Intersection(g)), mpierr.Group), classed("difference", second(g.Difference(g)), mpierr.Group),
				classed("incl", second(g.Incl(nil)), mpierr.Group), classed("excl", second(g.Excl(nil)), mpierr.Group),
				classed("range_incl", second(g.RangeIncl(nil)), mpierr.Group), classed("range_excl", second(g.RangeExcl(nil)), mpierr.Group))
		}
		for _, x := range []struct {
			what string
			err  error
			want mpierr.Class
		}{
			{"rank 3 of 3", second(world.Translate([]int{3}, world)), mpierr.Rank},
			{"rank -1", second(world.Translate([]int{-1}, world)), mpierr.Rank},
			{"incl of rank 3", second(world.Incl([]int{0, 3})), mpierr.Rank},
			{"incl of one twice", second(world.Incl([]int{1, 1})), mpierr.Rank},
			{"incl of too many", second(world.Incl([]int{0, 1, 2, 0})), mpierr.Arg},
			{"excl of rank -1", second(world.Excl([]int{-1})), mpierr.Rank},
			{"excl of one twice", second(world.Excl([]int{1, 1})), mpierr.Rank},
			{"stride 0", second(world.RangeIncl([]Range{{First: 0, Last: 2, Stride: 0}})), mpierr.Arg},
			{"stride that leads away", second(world.RangeExcl([]Range{{First: 0, Last: 2, Stride: -1}})), mpierr.Arg},
			{"range beyond the group", second(world.RangeIncl([]Range{{First: 0, Last: 3, Stride: 1}})), mpierr.Rank},
			{"ranges that overlap", second(world.RangeExcl([]Range{{First: 0, Last: 1, Stride: 1}, {First: 1, Last: 2, Stride: 1}})), mpierr.Rank},
		} {
			all = append(all, classed(x.what, x.err, x.want))
		}
		return errors.Join(all...)
	})
}
