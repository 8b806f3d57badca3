package script

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

type group struct {
	name    string
	members []int // procs by rank
	remote  []int // the members of an intercommunicator's other side
	context uint64
	grid    *grid
	live    bool
	fixed   bool   // it exists from the start
	of      *group // an Idup of this one is under way
}

// rank is the rank of a proc on its side of g, or -1.
func (g *group) rank(proc int) int {
	own, _ := g.sides(proc)
	return slices.Index(own, proc)
}

func (g *group) has(proc int) bool { return g.rank(proc) >= 0 }

func (g *group) inter() bool { return g.remote != nil }

func (g *group) all() []int { return slices.Concat(g.members, g.remote) }

func (g *group) sides(proc int) (own, other []int) {
	if slices.Contains(g.remote, proc) {
		return g.remote, g.members
	}
	return g.members, g.remote
}

// partners returns the procs that a member sends to and receives from, by rank.
func (g *group) partners(proc int) []int {
	own, other := g.sides(proc)
	if g.inter() {
		return other
	}
	return own
}

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

// rank returns the rank at coordinates, or -1 beyond the edge of a dimension that is not periodic.
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

// shift returns the rank that is disp further along a dimension, or -1.
func (g *grid) shift(rank, dim, disp int) int {
	coords := g.coords(rank)
	coords[dim] += disp
	return g.rank(coords)
}

// comms is the model of all communicators after the steps so far.
type comms struct {
	byName map[string]*group
	all    []*group // in the order of their creation
	max    []uint64 // the largest context ID that each proc has seen in use
	worlds []int    // procs of each
}

// IMPI ch.4, Context IDs: MPI_COMM_WORLD has 0, and 1 for collectives; 2 and 3
// are MPI_COMM_SELF's.
const firstMax = 3

func newComms(worlds ...int) *comms {
	c := &comms{byName: map[string]*group{}, worlds: worlds}
	for w, size := range worlds {
		g := &group{name: World, live: true, fixed: true}
		if c.several() {
			g.name = string(rune('a' + w))
		}
		for range size {
			g.members = append(g.members, len(c.max))
			c.max = append(c.max, firstMax)
		}
		c.add(g)
	}
	for proc := range c.max {
		if c.several() {
			c.add(&group{name: c.title(proc), members: []int{proc}, live: true, fixed: true})
		}
	}
	return c
}

// comms returns the model before the first step, without the worlds that are spawned later.
func (p *Program) comms() *comms {
	c := newComms(p.worlds()...)
	for _, s := range p.Steps {
		if s, ok := s.(Spawn); ok {
			for _, g := range c.of(s.World) {
				g.live = false
			}
		}
	}
	return c
}

// of returns MPI_COMM_WORLD and the MPI_COMM_SELFs of a world, by its letter.
func (c *comms) of(world string) []*group {
	g := c.byName[world]
	if g == nil || !g.fixed || c.self(g) || !c.several() {
		return nil
	}
	list := []*group{g}
	for _, proc := range g.members {
		list = append(list, c.byName[c.title(proc)])
	}
	return list
}

func (c *comms) there(proc int) bool {
	world, _ := c.worldOf(proc)
	return c.all[world].live
}

// started returns the proc or, if it has not been started, the last one before it that has.
func (c *comms) started(proc int) int {
	for !c.there(proc) {
		proc--
	}
	return proc
}

func (c *comms) spawn(s Spawn) (both *group, made []*group, err error) {
	g, err := c.intra(s.Comm)
	if err == nil && !g.has(s.Root) {
		err = fmt.Errorf("proc %d is not in %s", s.Root, s.Comm)
	}
	if err != nil || s.Fails != Nothing {
		return nil, nil, errors.Join(err, c.wants("a spawn"))
	}
	all := c.of(s.World)
	if all == nil || all[0].live {
		return nil, nil, fmt.Errorf("there is no world %s that is to be spawned", s.World)
	}
	for _, g := range all {
		g.live = true
	}
	return c.couple(s.Comm, s.World, s.Root, all[0].members[0], s.New)
}

// several reports whether the program has several worlds. In that case the model does not know
// context IDs.
func (c *comms) several() bool { return len(c.worlds) > 1 }

func (c *comms) worldOf(proc int) (world, rank int) {
	for rank = proc; rank >= c.worlds[world]; world++ {
		rank -= c.worlds[world]
	}
	return world, rank
}

// title names a proc: b1 is rank 1 of the second world.
func (c *comms) title(proc int) string {
	w, rank := c.worldOf(proc)
	return fmt.Sprintf("%c%d", 'a'+w, rank)
}

func (c *comms) self(g *group) bool { return g.fixed && c.several() && len(g.name) > 1 }

func (c *comms) add(g *group) {
	c.byName[g.name] = g
	c.all = append(c.all, g)
}

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

// apply applies a step to the model. It returns the communicators that the step makes, and their
// parent; nothing for other steps.
func (c *comms) apply(s Step) (parent *group, made []*group, err error) {
	name, split := c.maker(s)
	switch s := s.(type) {
	case Window:
		g, err := c.intra(s.Comm)
		if err != nil {
			return nil, nil, err
		}
		c.pass(g, 2) // the window's communicator
		c.pass(g, 4) // the graphs'
		c.pass(g, 4)
		return g, nil, nil
	case Free:
		return nil, nil, c.end(s.Comm, false)
	case Disconnect:
		return nil, nil, c.end(s.Comm, true)
	case Spawn:
		return c.spawn(s)
	case Meet:
		return c.couple(s.Comm, s.With, s.Root, s.WithRoot, s.New)
	case Intercomm:
		peer, err := c.get(s.Peer)
		if err == nil && (!peer.has(s.Leader) || !slices.Contains(peer.partners(s.Leader), s.WithLead)) {
			err = fmt.Errorf("the leaders cannot talk to each other on %s", s.Peer)
		}
		if err != nil {
			return nil, nil, err
		}
		return c.couple(s.Comm, s.With, s.Leader, s.WithLead, s.New)
	case Finish:
		g := c.byName[s.Comm]
		if g == nil || g.of == nil {
			return nil, nil, fmt.Errorf("no Idup makes communicator %s", s.Comm)
		}
		g.of, g.live = nil, true
		return g, []*group{g}, nil
	}
	if split == nil {
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

// maker returns the name of what a step makes of a communicator, and a function that divides the
// communicator as the step does.
func (c *comms) maker(s Step) (name string, split func(*group) ([]*group, error)) {
	switch s := s.(type) {
	case Dup:
		return s.Comm, func(g *group) ([]*group, error) {
			return []*group{{name: s.New, members: g.members, remote: g.remote, grid: g.grid}}, nil
		}
	case Idup:
		return s.Comm, func(g *group) ([]*group, error) {
			return []*group{{name: s.New, members: g.members, remote: g.remote, grid: g.grid, of: g}}, c.wants("Idup")
		}
	case Merge:
		return s.Comm, func(g *group) ([]*group, error) {
			if !g.inter() {
				return nil, fmt.Errorf("%s is no intercommunicator", g.name)
			}
			all := g.all()
			if s.High {
				all = slices.Concat(g.remote, g.members)
			}
			return []*group{{name: s.New, members: all}}, nil
		}
	case Split:
		return s.Comm, s.groups
	case Cart:
		return s.Comm, s.groups
	case CartSub:
		return s.Comm, s.groups
	}
	return "", nil
}

// wants refuses steps that need known context IDs, which several worlds do not have.
func (c *comms) wants(what string) error {
	if !c.several() {
		return fmt.Errorf("%s is for programs of several worlds", what)
	}
	return nil
}

// intra is get for operations that intercommunicators do not have.
func (c *comms) intra(name string) (*group, error) {
	g, err := c.get(name)
	if err == nil && g.inter() {
		err = fmt.Errorf("%s is an intercommunicator", name)
	}
	return g, err
}

// couple makes an intercommunicator of two groups, given a member of each.
func (c *comms) couple(name, with string, root, withRoot int, made string) (*group, []*group, error) {
	g, err := c.intra(name)
	d, err2 := c.intra(with)
	switch err := errors.Join(c.wants("an intercommunicator"), err, err2); {
	case err != nil:
		return nil, nil, err
	case slices.ContainsFunc(g.members, d.has):
		return nil, nil, fmt.Errorf("%s and %s have members in common", name, with)
	case !g.has(root) || !d.has(withRoot):
		return nil, nil, fmt.Errorf("proc %d is not in %s, or proc %d not in %s", root, name, withRoot, with)
	}
	both := &group{name: made, members: g.members, remote: d.members}
	return both, []*group{both}, c.make(both, []*group{both})
}

// end is Free or Disconnect. The members of a freed communicator remain connected.
func (c *comms) end(name string, disconnect bool) error {
	g, err := c.get(name)
	if err == nil {
		err = c.mayEnd(g, disconnect)
	}
	if err == nil {
		g.live = false
	}
	return err
}

func (c *comms) mayEnd(g *group, disconnect bool) error {
	name := g.name
	switch {
	case g.fixed:
		return fmt.Errorf("communicator %s cannot be freed", name)
	case slices.ContainsFunc(c.all, func(d *group) bool { return d.of == g }):
		return fmt.Errorf("an Idup of %s is under way", name)
	case !disconnect && !c.covered(g):
		return fmt.Errorf("members of %s have no other communicator with each other: Disconnect", name)
	}
	return nil
}

// covered reports whether each member of g has another communicator with procs of each other world
// that g has members of.
func (c *comms) covered(g *group) bool {
	for _, proc := range g.all() {
		own, _ := c.worldOf(proc)
		for _, other := range g.all() {
			world, _ := c.worldOf(other)
			if world != own && !slices.ContainsFunc(c.all, func(d *group) bool {
				return d != g && d.live && d.has(proc) && slices.ContainsFunc(d.all(), func(x int) bool {
					w, _ := c.worldOf(x)
					return w == world
				})
			}) {
				return false
			}
		}
	}
	return true
}

// make assigns contexts to new communicators. IMPI ch.4, Context IDs: the largest of all members of
// the parent plus one, and the next one for collectives; also counted by members that are in none
// of the new communicators.
func (c *comms) make(parent *group, made []*group) error {
	top := c.pass(parent, 2)
	for _, g := range made {
		if g.name == "" || c.byName[g.name] != nil {
			return fmt.Errorf("there has been a communicator %q before", g.name)
		}
		g.context, g.live = top+1, g.of == nil
		c.add(g)
	}
	return nil
}

// pass skips n context IDs and returns the largest one before them.
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
	if g.inter() {
		return nil, fmt.Errorf("%s is an intercommunicator", g.name)
	}
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
	if len(s.Dims) == 0 || len(s.Dims) != len(s.Periodic) || g.inter() {
		return nil, fmt.Errorf("%d dimensions and %d periods, or an intercommunicator", len(s.Dims), len(s.Periodic))
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
