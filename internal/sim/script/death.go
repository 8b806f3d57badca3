package script

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/core/mpierr"
)

// Death is a program in which three worlds meet while a root dies, and its world with it. World a
// opens a port, b connects to it, and c connects to the one of them that is left. The program has
// no other steps.
type Death struct {
	Roots     []int         // ranks, in a, b and c
	Accepts   bool          // the root of a dies; otherwise that of b
	At        int           `line:"at"` // the step of connecting that the root is in when the death is decided
	After     time.Duration // how long after that it dies
	Stopped   bool          // it does nothing in between
	Node      bool          // its whole node does nothing in between
	Connected bool          // a, or b if a dies, is connected with c all the time
	Slow      bool          // the accepting side waits a while
}

// LastStep is the step of connecting in which the temporary link of the roots is closed.
const LastStep = 16

// Worlds of a Death.
const (
	accepting = iota
	connecting
	third
)

// Impossible reports whether At is not a step of the root that dies: one side opens ports and
// accepts, the other connects.
func (d Death) Impossible() bool {
	if d.Accepts {
		return d.At == 1 || d.At == 2
	}
	return d.At == 0 || d.At == 4
}

// Victim returns the world that ends, and its root's number.
func (d Death) Victim(p *Program) (world, proc int) {
	if d.Accepts {
		return accepting, d.Roots[accepting]
	}
	return connecting, p.Worlds[accepting] + d.Roots[connecting]
}

func (d Death) check(p *Program) error {
	if len(p.Worlds) != 3 || len(d.Roots) != 3 || len(p.Steps) != 1 || len(p.Messages) > 0 {
		return errors.New("it is the only step of a program of three worlds, and names a root of each")
	}
	for w, r := range d.Roots {
		if r < 0 || r >= p.Worlds[w] {
			return fmt.Errorf("world %d has no root %d", w, r)
		}
	}
	if d.At < 0 || d.At > LastStep || d.After < 0 || d.Impossible() {
		return fmt.Errorf("its root does not come to step %d of connecting", d.At)
	}
	return nil
}

// GenerateDeath draws such a program.
func GenerateDeath(t *rapid.T) *Program {
	d, p, x := &Draws{t}, &Program{}, Death{}
	for range 3 {
		n := 1 + d.IntN(3)
		p.Worlds, x.Roots, p.Procs = append(p.Worlds, n), append(x.Roots, d.IntN(n)), p.Procs+n
	}
	x.Accepts, x.Node, x.Connected, x.Stopped, x.Slow = d.OneIn(2), d.OneIn(8), d.OneIn(2), d.IntN(3) > 0, d.OneIn(3)
	x.After = time.Duration(d.IntN(3)*d.IntN(400)) * time.Microsecond
	var possible []int
	for x.At = range LastStep + 1 {
		if !x.Impossible() {
			possible = append(possible, x.At)
		}
	}
	x.At = Pick(d, possible...)
	p.Steps = []Step{x}
	return p
}

type survivor struct {
	meeter
	d           Death
	world, rest int // its own world, and the one of a and b that survives
	root        bool
}

func (m *survivor) live() error {
	m.log(m.d)
	victim, _ := m.d.Victim(m.a.p)
	var rank int
	m.world, rank = m.comms.worldOf(m.me)
	m.rest, m.root = accepting+connecting-victim, rank == m.d.Roots[m.world]
	var beside *mpi.Comm
	if m.d.Connected && m.world != victim {
		port, err := m.port("beside", m.world == m.rest)
		if err == nil {
			beside, err = m.pair(port, m.world == m.rest)
		}
		if err == nil && m.world == m.rest && m.root {
			err = m.among.MPI().ClosePort(port)
		}
		if err != nil {
			return failed(err)
		}
	}
	if err := m.part(); err != nil {
		return err
	}
	if beside != nil {
		if err := errors.Join(beside.Barrier(), beside.Disconnect()); err != nil {
			return fmt.Errorf("worlds that have nothing to do with it: %w", failed(err))
		}
	}
	return nil
}

func (m *survivor) part() error {
	switch {
	case m.world == m.rest && m.rest == connecting:
		if err := m.visit("first", false); err != nil {
			return err
		}
		return m.serve("last")
	case m.world == m.rest:
		return m.serve("first")
	case m.world == third:
		return m.visit("last", true)
	case m.world == connecting:
		return m.visit("first", true)
	}
	port, err := m.port("first", true)
	if err != nil {
		return err
	}
	m.delayAccept()
	c, err := m.pair(port, true)
	if err == nil {
		_, err = m.greet(c, true)
	}
	if err == nil {
		m.among.Shared().Leaves++
		err = c.Disconnect()
	}
	if err == nil && m.root {
		err = m.among.MPI().ClosePort(port)
	}
	return failed(err)
}

// port opens a port at the world's root, or finds out which port has a name.
func (m *survivor) port(name string, open bool) (port string, err error) {
	x := m.among.Shared()
	if !m.root {
		return "", nil
	}
	if open {
		port, err = m.among.MPI().OpenPort(nil)
		x.Ports[name] = port
		return port, failed(err)
	}
	for n := 0; x.Ports[name] == "" && !(name == "first" && x.Gone[0]); n++ {
		m.idle(n)
	}
	return x.Ports[name], nil
}

func (m *survivor) delayAccept() {
	waited := m.among.Shared().Waited
	switch before := waited(); {
	case m.d.At == 3 && m.root:
		for n := 0; waited() == before && n < 200; n++ {
			m.idle(n)
		}
	case m.d.Slow:
		m.env.Pause(m.among.Between(5*time.Millisecond, 10*time.Millisecond))
	}
}

func (m *survivor) pair(port string, accepts bool) (*mpi.Comm, error) {
	if accepts {
		return m.env.World().Accept(port, nil, m.d.Roots[m.world])
	}
	return m.env.World().Connect(port, nil, m.d.Roots[m.world])
}

// same checks that all members of the world get the same result, or errors of the same class.
func (m *survivor) same(what string, c *mpi.Comm, err error) error {
	got := mpi.ErrorClass(err).String()
	if err == nil {
		got = fmt.Sprintf("context %#x", uint64(c.Context()))
	}
	key := fmt.Sprint(what, m.world)
	said := m.among.Shared().Said
	if first, ok := said[key]; ok && first != got {
		return mismatch("%s: %s, and another of its world has %s", what, got, first)
	}
	said[key] = got
	return nil
}

// greet makes each member of the accepting side send to the first member of the other side, which
// answers with its world.
func (m *survivor) greet(c *mpi.Comm, accepts bool) (who int, err error) {
	n, err := c.RemoteSize()
	if err != nil {
		return 0, err
	}
	me, in := []int64{int64(m.world)}, []int64{0}
	if accepts {
		_, err = mpi.Sendrecv(c, me, 0, 1, in, 0, 1)
		return int(in[0]), err
	}
	for i := 0; i < n && c.Rank() == 0; i++ {
		_, e := mpi.Sendrecv(c, me, i, 1, in, i, 1)
		err = errors.Join(err, e)
	}
	return int(in[0]), err
}

// visit connects to a port, greets and disconnects. If must is set, it may not fail.
func (m *survivor) visit(name string, must bool) error {
	port, err := m.port(name, false)
	if err != nil {
		return err
	}
	c, why := m.pair(port, false)
	if m.world == m.rest || m.world == third {
		if err := m.same("Connect to "+name, c, why); err != nil {
			return err
		}
	}
	if why == nil {
		_, why = m.greet(c, false)
	}
	if must {
		if why == nil {
			if m.world != third {
				m.among.Shared().Leaves++
			}
			why = c.Disconnect()
		}
		return failed(why)
	}
	return m.away(c, why)
}

// away disconnects, and frees the communicators for which that fails. All members of the world do
// so, even if they know of no failure. After a failed greeting Disconnect may only succeed if all
// members at the other end have called it: the one that died did so during the call.
func (m *survivor) away(c *mpi.Comm, why error) error {
	if c != nil {
		others, err := c.RemoteSize()
		if err != nil {
			return failed(err)
		}
		switch err := c.Disconnect(); {
		case err == nil && why == nil:
			return nil
		case err == nil && m.among.Shared().Leaves < others:
			return mismatch("Disconnect is good, where this had failed: %v", why)
		case err == nil:
			c = nil // there is nothing to free
		case why == nil:
			why = err
		}
	}
	class := mpi.ErrorClass(why)
	m.among.Shared().Count("class " + class.String())
	switch {
	case !m.among.Shared().Doomed:
		return fmt.Errorf("nobody has died: %w", failed(why))
	case class != mpierr.Port && class != mpierr.ProcAborted:
		return mismatch("class %v of: %v", class, why)
	case c == nil:
		return nil
	}
	return failed(c.Free())
}

// serve accepts at a port until the third world has connected. The worlds that connect before may
// die at any time.
func (m *survivor) serve(name string) error {
	port, err := m.port(name, true)
	if err != nil {
		return err
	}
	m.delayAccept()
	for attempt, who := 0, -1; who != third; attempt++ {
		c, err := m.pair(port, true)
		if err := m.same(fmt.Sprint("Accept ", attempt), c, err); err != nil {
			return err
		}
		m.among.Shared().Ports["last"] = m.among.Shared().Ports[name]
		if who, err = m.served(c, err); err != nil {
			return err
		}
	}
	if m.root {
		return failed(m.among.MPI().ClosePort(port))
	}
	return nil
}

// served exchanges greetings with a world that has connected, and tells all members which it was.
func (m *survivor) served(c *mpi.Comm, why error) (who int, err error) {
	who = -1
	if why == nil {
		who, why = m.greet(c, true)
	}
	mine, all := []int64{int64(who), int64(truth[int](why != nil))}, []int64{0, 0}
	if err := mpi.Allreduce(m.env.World(), mine, all, mpi.Max); err != nil {
		return 0, fmt.Errorf("one's own world: %w", failed(err))
	}
	if who = int(all[0]); who != third {
		return who, m.away(c, why)
	}
	if all[1] == 0 {
		why = c.Disconnect()
	}
	return who, failed(why)
}

// Fail is the last step of a program: a proc of a spawned world dies, and its world with it, once
// that world has no communicator with another one any more. That is no matter of the others (MPI
// 4.1, 11.10.4), so the proc that spawned it waits until it is over, and its job must still end in
// order.
type Fail struct {
	World string `line:"@"`
}

// Fails returns the world that fails, if one does, and the proc that has spawned it.
func (p *Program) Fails() (world, spawner int, fails bool) {
	for _, s := range p.Steps {
		if f, ok := s.(Fail); ok && len(f.World) == 1 {
			world = int(f.World[0]) - 'a'
			s, fails := p.Spawned(world)
			return world, s.Root, fails
		}
	}
	return 0, 0, false
}

// check checks that the world was spawned, has spawned no other one and has no communicator with
// others left.
func (s Fail) check(p *Program, c *comms) error {
	world, _, spawned := p.Fails()
	if _, last := p.Steps[len(p.Steps)-1].(Fail); !last || !spawned {
		return errors.New("it is the last step, and its world is spawned before")
	}
	if p.spawner(world) {
		return fmt.Errorf("world %s has spawned another one, which would lose its parents", s.World)
	}
	if g := c.bridge(world); g != nil {
		return fmt.Errorf("members of world %s have communicator %s with others", s.World, g.name)
	}
	return nil
}

func (p *Program) spawner(world int) bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool {
		x, ok := s.(Spawn)
		return ok && p.WorldOf(x.Root) == world
	})
}

// bridge returns a communicator of members of a world with others; nil if there is none.
func (c *comms) bridge(world int) *group {
	of := func(proc int) bool { w, _ := c.worldOf(proc); return w == world }
	not := func(proc int) bool { return !of(proc) }
	i := slices.IndexFunc(c.all, func(g *group) bool {
		all := g.all()
		return (g.live || g.of != nil) && slices.ContainsFunc(all, of) && slices.ContainsFunc(all, not)
	})
	if i < 0 {
		return nil
	}
	return c.all[i]
}

func (g *meeting) fail() {
	p := &Program{Procs: g.o.Procs, Worlds: g.o.Worlds, Steps: g.steps}
	var may []string
	for w := range g.o.Worlds {
		if _, spawned := p.Spawned(w); spawned && !p.spawner(w) {
			may = append(may, string(rune('a'+w)))
		}
	}
	if len(may) > 0 && g.OneIn(2) {
		g.emit(Fail{Pick(g.Draws, may...)})
	}
}

// fail is a proc's part of Fail. The first proc of the world dies when all others have come here,
// as some may still be in a Disconnect from it before; what its links' ends still tell each other
// by then does not matter.
func (m *meeter) fail() error {
	world, spawner, _ := m.a.p.Fails()
	own, rank := m.comms.worldOf(m.me)
	x := m.among.Shared()
	switch {
	case m.me == spawner:
		m.log(m.a.p.Steps[m.step])
		for n := 0; !x.Over(world); n++ {
			m.idle(n)
		}
		m.env.Pause(m.among.Between(5*time.Millisecond, 10*time.Millisecond)) // until its node must have heard of it
	case own == world && rank == 0:
		m.log(m.a.p.Steps[m.step])
		for n := 0; slices.ContainsFunc(m.a.everybody(), func(r int) bool { return !m.has(r, m.step) }); n++ {
			m.idle(n)
		}
		x.Doomed = true
		x.Kill(world)
		for { // until it dies
			m.idle(0)
		}
	}
	return nil
}

func (a *lives) everybody() (all []int) {
	for r := range a.p.Procs {
		all = append(all, r)
	}
	return all
}
