package job

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/core/wire"
)

// family is what a proc knows of overlapping communicators while more of them are made. The plan is
// the same in all procs; each proc decides only the order of things whose order is free.
type family struct {
	e         Env
	plan, own *rand.Rand
	world     *mpi.Group
	me        int
	all       []member
	used      map[wire.ContextID]bool
}

// member is a communicator: its world ranks by rank, and the communicator itself, nil unless this
// proc is a member.
type member struct {
	c     *mpi.Comm
	ranks []int
}

// overlapping makes communicators of communicators, of every kind, several at a time.
func overlapping(seed uint64, steps int) func(Env) error {
	return func(e Env) error {
		c := e.World()
		world, err := c.Group()
		if err != nil {
			return err
		}
		f := &family{
			e: e, plan: rand.New(rand.NewPCG(seed, 1)), own: rand.New(rand.NewPCG(seed, uint64(2+c.Rank()))),
			world: world, me: c.Rank(), used: map[wire.ContextID]bool{},
		}
		everybody := make([]int, c.Size())
		for r := range everybody {
			everybody[r] = r
		}
		f.all = []member{{c, everybody}}
		makers := []func(member) error{f.dup, f.split, f.create, f.createGroup, f.merge}
		for i := range steps {
			parent := f.all[f.plan.IntN(len(f.all))]
			if k := f.plan.IntN(len(makers) + 2); k < len(makers) {
				err = makers[k](parent)
			} else {
				err = f.crossed(parent, f.all[f.plan.IntN(len(f.all))])
			}
			if err != nil {
				return fmt.Errorf("step %d: %w", i, err)
			}
		}
		return nil
	}
}

// made records a communicator of world ranks.
func (f *family) made(c *mpi.Comm, err error, ranks []int) error {
	if err != nil {
		return err
	}
	rank := slices.Index(ranks, f.me)
	if (c == nil) != (rank < 0) {
		return fmt.Errorf("rank %d of %v got %v", rank, ranks, c)
	}
	f.all = append(f.all, member{c, ranks})
	if c == nil {
		return nil
	}
	if c.Rank() != rank || c.Size() != len(ranks) {
		return fmt.Errorf("rank %d of %d, want %d of %d", c.Rank(), c.Size(), rank, len(ranks))
	}
	for _, id := range []wire.ContextID{c.Context(), c.CollectiveContext()} {
		if f.used[id] || id < 4 {
			return fmt.Errorf("context %d twice", uint64(id))
		}
		f.used[id] = true
	}
	sum, want := []int64{int64(f.me)}, int64(0)
	for _, r := range ranks {
		want += int64(r)
	}
	if err := mpi.Allreduce(c, nil, sum, mpi.Sum); err != nil || sum[0] != want {
		return fmt.Errorf("sum %d of %v, %w", sum[0], ranks, err)
	}
	return nil
}

func (f *family) dup(p member) error {
	if p.c == nil {
		return f.made(nil, nil, p.ranks)
	}
	c, err := p.c.Dup()
	return f.made(c, err, p.ranks)
}

// crossed begins two Idups at a time. Some procs complete one before they begin
// the other; the rest begin and complete them in any order.
func (f *family) crossed(a, b member) error {
	if a.c == b.c || a.c == nil || b.c == nil || f.own.IntN(2) == 0 {
		x, err1 := f.idup(a)
		y, err2 := f.idup(b)
		return errors.Join(f.made(x, err1, a.ranks), f.made(y, err2, b.ranks))
	}
	y, qy, err := b.c.Idup()
	if err != nil {
		return err
	}
	x, qx, err := a.c.Idup()
	if err != nil {
		return err
	}
	open := []*mpi.Request{&qx, &qy}
	i := f.own.IntN(2)
	_, err1 := open[i].Wait()
	_, err2 := open[1-i].Wait()
	return errors.Join(f.made(x, err1, a.ranks), f.made(y, err2, b.ranks))
}

func (f *family) idup(p member) (*mpi.Comm, error) {
	if p.c == nil {
		return nil, nil
	}
	c, q, err := p.c.Idup()
	if err == nil {
		_, err = q.Wait()
	}
	return c, err
}

func (f *family) split(p member) error {
	colors := make([]int, len(p.ranks))
	parts := [2][]int{}
	for i, r := range p.ranks {
		if colors[i] = f.plan.IntN(3); colors[i] == 2 {
			colors[i] = mpi.Undefined
		} else {
			parts[colors[i]] = append(parts[colors[i]], r)
		}
	}
	var c *mpi.Comm
	var err error
	if p.c != nil {
		c, err = p.c.Split(colors[p.c.Rank()], -p.c.Rank())
	}
	for color := range parts {
		slices.Reverse(parts[color])
		if len(parts[color]) == 0 {
			continue
		}
		mine := c
		if p.c == nil || colors[p.c.Rank()] != color {
			mine = nil
		}
		if e := f.made(mine, err, parts[color]); e != nil {
			return e
		}
	}
	return err
}

// some picks world ranks of a communicator, in random order.
func (f *family) some(p member) ([]int, *mpi.Group, error) {
	ranks := slices.Clone(p.ranks)
	f.plan.Shuffle(len(ranks), func(i, j int) { ranks[i], ranks[j] = ranks[j], ranks[i] })
	ranks = ranks[:1+f.plan.IntN(len(ranks))]
	g, err := f.world.Incl(ranks)
	return ranks, g, err
}

func (f *family) create(p member) error {
	ranks, g, err := f.some(p)
	var c *mpi.Comm
	if p.c != nil && err == nil {
		c, err = p.c.Create(g)
	}
	return f.made(c, err, ranks)
}

func (f *family) createGroup(p member) error {
	ranks, g, err := f.some(p)
	tag := f.plan.IntN(1000)
	var c *mpi.Comm
	if err == nil && slices.Contains(ranks, f.me) {
		c, err = p.c.CreateGroup(g, tag)
	}
	return f.made(c, err, ranks)
}

// merge makes two parts of a communicator, connects and merges them.
func (f *family) merge(p member) error {
	if len(p.ranks) < 2 {
		return nil
	}
	n, high := 1+f.plan.IntN(len(p.ranks)-1), f.plan.IntN(2) == 0
	ranks := p.ranks
	if high {
		ranks = append(slices.Clone(p.ranks[n:]), p.ranks[:n]...)
	}
	if p.c == nil {
		return f.made(nil, nil, ranks)
	}
	left := p.c.Rank() < n
	color, remote := 0, n
	if !left {
		color, remote = 1, 0
	}
	half, err := p.c.Split(color, 0)
	if err != nil {
		return err
	}
	inter, err := half.IntercommCreate(0, p.c, remote, 7)
	if err != nil {
		return err
	}
	c, err := inter.Merge(left == high)
	if err := errors.Join(err, inter.Free(), half.Free()); err != nil {
		return err
	}
	return f.made(c, err, ranks)
}

// Procs of several sites make overlapping communicators, several at a time and each in its own
// order: none waits for ever, and no proc gets a context twice.
func TestOverlappingCommunicators(t *testing.T) {
	for seed := range seeds(150) {
		cfg := twoSites(overlapping(seed, 12))
		if seed%3 == 0 {
			cfg.Sites = []Site{{Hosts: []int{1}}, {Hosts: []int{3}}, {Hosts: []int{1, 1}}}
		}
		cfg.Direct = seed%2 == 0
		clean(t, seed, simulate(t, seed, cfg))
	}
}
