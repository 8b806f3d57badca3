package script

import (
	"slices"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/mpi"
)

func (r *runner) construct(s Step) error {
	parent, made, err := r.comms.apply(s)
	if err != nil {
		return err // checked already
	}
	switch s := s.(type) {
	case Spawn:
		if s.Fails != Nothing {
			return (&meeter{r}).refused(s)
		}
	case Free:
		return (&meeter{r}).leave(s, s.Comm, (*mpi.Comm).Free)
	case Disconnect:
		return (&meeter{r}).leave(s, s.Comm, (*mpi.Comm).Disconnect)
	}
	if !parent.has(r.me) {
		return nil
	}
	r.log(s)
	c, err := r.derive(s, parent)
	if err != nil {
		return failed(err)
	}
	i := slices.IndexFunc(made, func(g *group) bool { return g.has(r.me) && g.live })
	switch {
	case i < 0 && c == nil:
		return nil
	case i < 0:
		return mismatch("a communicator of %d ranks, but none is expected", c.Size())
	case c == nil:
		return mismatch("no communicator, but %s with %d ranks is expected", made[i].name, len(made[i].members))
	}
	r.open[made[i].name] = c
	return r.enter(made[i], c)
}

func (r *runner) derive(s Step, parent *group) (*mpi.Comm, error) {
	c := r.open[parent.name]
	switch s := s.(type) {
	case Split:
		i := parent.rank(r.me)
		color := s.Colors[i]
		if color == NoColor {
			color = mpi.Undefined
		}
		return c.Split(color, s.Keys[i])
	case Cart:
		return c.CartCreate(s.Dims, s.Periodic, false)
	case CartSub:
		return c.CartSub(s.Keep)
	case Dup:
		return c.Dup()
	}
	return (&meeter{r}).derive(s, parent, c)
}

func (r *runner) enter(g *group, c *mpi.Comm) error {
	m := Membership{r.step, g.name, uint64(c.Context()), c.Rank(), c.Size(), c.Inter()}
	if err := r.rec.claim(m); err != nil {
		return err
	}
	r.rec.Comms = append(r.rec.Comms, m)
	own, other := g.sides(r.me)
	if m.Size != len(own) || m.Rank != g.rank(r.me) || m.Inter != g.inter() {
		return mismatch("rank %d of %d in %s, want %d of %d", m.Rank, m.Size, g.name, g.rank(r.me), len(own))
	}
	if g.inter() {
		if n, err := c.RemoteSize(); err != nil || n != len(other) {
			return mismatch("the other side of %s has %d members, want %d: %v", g.name, n, len(other), err)
		}
	}
	if r.comms.several() { // each proc numbers the ranks of other worlds by itself
		return r.topology(g, c)
	}
	for rank, world := range g.members {
		if p, ok := c.Proc(rank); !ok || p != comm.Proc(world) {
			return mismatch("rank %d of %s is proc %d, want %d", rank, g.name, p, world)
		}
	}
	if m.Context != g.context || uint64(c.CollectiveContext()) != g.context+1 {
		return mismatch("contexts %d and %d of %s, want %d and %d", c.Context(), c.CollectiveContext(), g.name, g.context, g.context+1)
	}
	return r.topology(g, c)
}

func (r *runner) topology(g *group, c *mpi.Comm) error {
	if g.grid == nil {
		if c.Cart() != nil {
			return mismatch("%s is a grid, want none", g.name)
		}
		return nil
	}
	dims, periodic, coords, err := c.CartGet()
	if err != nil {
		return failed(err)
	}
	me := c.Rank()
	if !slices.Equal(dims, g.grid.dims) || !slices.Equal(periodic, g.grid.periodic) || !slices.Equal(coords, g.grid.coords(me)) {
		return mismatch("%s is a grid %v, %v, with rank %d at %v; want %v, %v and %v",
			g.name, dims, periodic, me, coords, g.grid.dims, g.grid.periodic, g.grid.coords(me))
	}
	for dim := range dims {
		for _, disp := range []int{1, -2} {
			source, dest, err := c.CartShift(dim, disp)
			if err != nil {
				return failed(err)
			}
			if source != neighbour(g.grid, me, dim, -disp) || dest != neighbour(g.grid, me, dim, disp) {
				return mismatch("%s: shift by %d in dimension %d is from %d to %d", g.name, disp, dim, source, dest)
			}
		}
	}
	return nil
}

func neighbour(g *grid, rank, dim, disp int) int {
	if at := g.shift(rank, dim, disp); at >= 0 {
		return at
	}
	return mpi.ProcNull
}
