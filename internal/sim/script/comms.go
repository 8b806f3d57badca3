package script

import (
	"cmp"
	"fmt"
	"slices"
)

// group is a communicator as the model has it.
type group struct {
	name    string
	members []int // world ranks
	context uint64
	grid    *grid
	live    bool
}

// rank is the rank in g of a world rank, or -1.
func (g *group) rank(world int) int { return slices.Index(g.members, world) }

func (g *group) has(world int) bool { return g.rank(world) >= 0 }

// grid is a Cartesian topology, ranks in row-major order.
type grid struct {
	dims     []int
	periodic []bool
}

func (g *grid) size() int {
	n := 1
	for _, d := range g.dims {
		n *= d
	}
	return n
}

func (g *grid) coords(rank int) []int {
	coords := make([]int, len(g.dims))
	for i := len(g.dims) - 1; i >= 0; i-- {
		coords[i] = rank % g.dims[i]
		rank /= g.dims[i]
	}
	return coords
}

// rank gives the rank at coordinates, or -1 beyond an open edge.
func (g *grid) rank(coords []int) int {
	rank := 0
	for i, x := range coords {
		d := g.dims[i]
		if g.periodic[i] {
			x = (x%d + d) % d
		}
		if x < 0 || x >= d {
			return -1
		}
		rank = rank*d + x
	}
	return rank
}

// shift gives the rank that is disp further along a dimension, or -1.
func (g *grid) shift(rank, dim, disp int) int {
	coords := g.coords(rank)
	coords[dim] += disp
	return g.rank(coords)
}

// comms is the model of all communicators, as the steps so far have made them.
type comms struct {
	byName map[string]*group
	all    []*group // in the order of their making
	max    []uint64 // the largest context ID that each proc has seen in use
}

// IMPI ch.4, Context IDs: MPI_COMM_WORLD has 0, and 1 for collectives; 2 and 3
// are MPI_COMM_SELF's.
const firstMax = 3

func newComms(procs int) *comms {
	c := &comms{byName: map[string]*group{}, max: make([]uint64, procs)}
	world := &group{name: World, live: true}
	for p := range procs {
		world.members = append(world.members, p)
		c.max[p] = firstMax
	}
	c.add(world)
	return c
}

func (c *comms) add(g *group) {
	c.byName[g.name] = g
	c.all = append(c.all, g)
}

// get finds a communicator that can be used.
func (c *comms) get(name string) (*group, error) {
	g := c.byName[name]
	switch {
	case g == nil:
		return nil, fmt.Errorf("there is no communicator %s", name)
	case !g.live:
		return nil, fmt.Errorf("communicator %s has been freed", name)
	}
	return g, nil
}

// apply does what a step means for communicators. It gives what is made, and of
// what; nothing for other steps.
func (c *comms) apply(s Step) (parent *group, made []*group, err error) {
	var name string
	var split func(*group) ([]*group, error)
	switch s := s.(type) {
	case Dup:
		name = s.Comm
		split = func(g *group) ([]*group, error) {
			return []*group{{name: s.New, members: g.members, grid: g.grid}}, nil
		}
	case Split:
		name, split = s.Comm, s.groups
	case Cart:
		name, split = s.Comm, s.groups
	case CartSub:
		name, split = s.Comm, s.groups
	case Window:
		g, err := c.get(s.Comm)
		if err != nil {
			return nil, nil, err
		}
		c.pass(g, 2) // the window's communicator
		c.pass(g, 4) // the graphs'
		c.pass(g, 4)
		return g, nil, nil
	case Free:
		g, err := c.get(s.Comm)
		if err == nil && g.name == World {
			err = fmt.Errorf("communicator %s cannot be freed", World)
		}
		if err == nil {
			g.live = false
		}
		return nil, nil, err
	default:
		return nil, nil, nil
	}
	if parent, err = c.get(name); err != nil {
		return nil, nil, err
	}
	if made, err = split(parent); err != nil {
		return nil, nil, err
	}
	return parent, made, c.make(parent, made)
}

// make gives new communicators their context.
// IMPI ch.4, Context IDs: the largest of all members of the parent and one more,
// and the next for collectives; also for those that are in none of the new ones.
func (c *comms) make(parent *group, made []*group) error {
	top := c.pass(parent, 2)
	for _, g := range made {
		if g.name == "" || c.byName[g.name] != nil {
			return fmt.Errorf("there has been a communicator %q before", g.name)
		}
		g.context, g.live = top+1, true
		c.add(g)
	}
	return nil
}

// pass uses up n contexts and gives the largest before them.
func (c *comms) pass(parent *group, n uint64) (top uint64) {
	for _, p := range parent.members {
		top = max(top, c.max[p])
	}
	for _, p := range parent.members {
		c.max[p] = top + n
	}
	return top
}

func (s Split) groups(g *group) ([]*group, error) {
	n := len(g.members)
	if len(s.Colors) != n || len(s.Keys) != n {
		return nil, fmt.Errorf("%d colors and %d keys for %d members", len(s.Colors), len(s.Keys), n)
	}
	ranks := make([]int, n)
	for i := range ranks {
		ranks[i] = i
	}
	slices.SortStableFunc(ranks, func(a, b int) int {
		return cmp.Or(cmp.Compare(s.Colors[a], s.Colors[b]), cmp.Compare(s.Keys[a], s.Keys[b]))
	})
	var made []*group
	last := NoColor
	for _, r := range ranks {
		color := s.Colors[r]
		if color == NoColor {
			continue
		}
		if color != last {
			made, last = append(made, &group{}), color
		}
		newest := made[len(made)-1]
		newest.members = append(newest.members, g.members[r])
	}
	return made, christen(made, s.New)
}

func christen(made []*group, names []string) error {
	if len(made) != len(names) {
		return fmt.Errorf("%d names for %d communicators", len(names), len(made))
	}
	for i, g := range made {
		g.name = names[i]
	}
	return nil
}

func (s Cart) groups(g *group) ([]*group, error) {
	if len(s.Dims) == 0 || len(s.Dims) != len(s.Periodic) {
		return nil, fmt.Errorf("%d dimensions and %d periods", len(s.Dims), len(s.Periodic))
	}
	grid := &grid{s.Dims, s.Periodic}
	places := 1
	for _, d := range s.Dims {
		if d < 1 || d > len(g.members) {
			return nil, fmt.Errorf("a dimension of %d for %d members", d, len(g.members))
		}
		if places *= d; places > len(g.members) {
			return nil, fmt.Errorf("a grid of %v for %d members", s.Dims, len(g.members))
		}
	}
	return []*group{{name: s.New, members: g.members[:places:places], grid: grid}}, nil
}

func (s CartSub) groups(g *group) ([]*group, error) {
	if g.grid == nil || len(s.Keep) != len(g.grid.dims) {
		return nil, fmt.Errorf("communicator %s is no grid of %d dimensions", g.name, len(s.Keep))
	}
	sub := &grid{}
	for i, keep := range s.Keep {
		if keep {
			sub.dims, sub.periodic = append(sub.dims, g.grid.dims[i]), append(sub.periodic, g.grid.periodic[i])
		}
	}
	made := make([]*group, len(g.members)/sub.size())
	for r, world := range g.members {
		slice := 0
		for i, x := range g.grid.coords(r) {
			if !s.Keep[i] {
				slice = slice*g.grid.dims[i] + x
			}
		}
		if made[slice] == nil {
			made[slice] = &group{grid: sub}
		}
		made[slice].members = append(made[slice].members, world)
	}
	return made, christen(made, s.New)
}
