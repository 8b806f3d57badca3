package script

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/openimpi/impi/core/mpi"
)

// MeetingEnv is implemented by the Env of a proc whose world meets others.
type MeetingEnv interface {
	Env
	OrderChecker
	Number() int // returns the number of the proc
	MPI() *mpi.Proc
	Between(lo, hi time.Duration) time.Duration // returns a random duration
	Now() time.Duration
	Shared() *Shared
	// Sever breaks the connections of the proc's node to name servers, which may notice late;
	// Rejoin makes the node connect again. LoseAnswer makes the answer to the next request about a
	// name get lost.
	Sever(late bool)
	Rejoin()
	LoseAnswer()
}

// Shared is what all procs of a program of several worlds share, in addition to MPI.
type Shared struct {
	Ports  map[string]string    // names of ports in MPI by their names in the program
	Gone   map[int]bool         // procs that have died
	Doomed bool                 // the death of a root, or the failure of a spawned world, has been decided
	Leaves int                  // number of procs of the world that loses its root that have called Disconnect
	Kill   func(world int)      // makes the first proc of a world die
	Over   func(world int) bool // reports whether nothing is left of a world
	Waited func() int           // returns the number of callers that have waited at ports
	Count  func(what string)
	NodeOf func(proc int) int // returns a number of the proc's node
	Room   int                // number of names in one scope; 0: the node's own limit
	Said   map[string]string  // by text: the result that the first proc of a world got
	Met    func()             // says that a proc of a Recover has met the other world
	Die    func(proc int)     // kills the proc that calls it, and does not return
}

type meeter struct{ *runner }

func portName(port int) string { return fmt.Sprintf("port %d", port) }

func (m *meeter) openPort(port int) error {
	name, err := m.among.MPI().OpenPort(nil)
	m.among.Shared().Ports[portName(port)] = name
	return failed(err)
}

func (m *meeter) closePort(port int) error {
	return failed(m.among.MPI().ClosePort(m.among.Shared().Ports[portName(port)]))
}

// derive makes the communicators that only programs of several worlds have. c is the parent's
// communicator, if there is one.
func (m *meeter) derive(s Step, parent *group, c *mpi.Comm) (*mpi.Comm, error) {
	switch s := s.(type) {
	case Idup:
		d, req, err := c.Idup()
		m.idups[s.New] = idup{d, req}
		return nil, err
	case Finish:
		d := m.idups[s.Comm]
		_, err := d.req.Wait()
		return d.c, err
	case Merge:
		return c.Merge(s.High == slices.Contains(parent.members, m.me))
	case Intercomm:
		own, other, leader, with := s.Comm, s.With, s.Leader, s.WithLead
		if m.comms.byName[other].has(m.me) {
			own, leader, with = other, with, leader
		}
		g, tag := m.comms.byName[own], TagLimit+controlTags+m.step%leaderTags
		if leader != m.me {
			return m.open[own].IntercommCreate(g.rank(leader), nil, 0, tag)
		}
		return m.open[own].IntercommCreate(g.rank(leader), m.open[s.Peer], m.comms.byName[s.Peer].rank(with), tag)
	case Meet:
		return m.meet(s)
	case Spawn:
		if m.comms.byName[s.Comm].has(m.me) {
			return m.spawn(s)
		}
		return m.among.MPI().Parent(), m.number(s)
	}
	return nil, fmt.Errorf("%w: %s makes no communicator", ErrIllegal, Verb(s))
}

func (m *meeter) leave(s Step, name string, end func(*mpi.Comm) error) error {
	c := m.open[name]
	if c == nil {
		return nil
	}
	m.log(s)
	delete(m.open, name)
	return failed(end(c))
}

// meet is the proc's part of Accept or Connect. The name of the port gets from one root to the
// other beside MPI, and no proc connects before the other root has come to this step.
func (m *meeter) meet(s Meet) (*mpi.Comm, error) {
	name := func() string { return m.among.Shared().Ports[portName(s.Port)] }
	if g := m.comms.byName[s.Comm]; g.has(m.me) {
		if m.me != s.Root {
			return m.open[s.Comm].Accept("", nil, g.rank(s.Root))
		}
		m.env.Pause(s.Late)
		return m.open[s.Comm].Accept(name(), nil, g.rank(s.Root))
	}
	root := m.comms.byName[s.With].rank(s.WithRoot)
	if m.me != s.WithRoot {
		return m.open[s.With].Connect("", nil, root)
	}
	for n := 0; !m.has(s.Root, m.step); n++ {
		m.idle(n)
	}
	return m.open[s.With].Connect(name(), nil, root)
}

// idle lets time pass in which MPI makes progress, and more each time.
func (m *meeter) idle(before int) {
	m.env.Pause(20 * time.Microsecond << min(before, 8))
	_, _, _ = mpi.Iprobe(m.among.MPI().Self(), mpi.AnySource, TagLimit+controlTags+leaderTags) // no such message is ever sent; a message that is there would end a probe before it makes progress
}

// settling is how long it may take until nothing is left of worlds that were disconnected.
const settling = 30 * time.Second

// settle waits until nothing is left of other worlds. A spawned proc waits only a little if its
// spawner may be spawning others that wait for its slot, since the spawner closes no links during
// that time.
func (m *meeter) settle() error {
	again := m.a.p.spawnsAgain(m.me)
	if !again { // the names of its world end with it
		m.awaitNames(len(m.a.p.Steps))
	}
	x, begun := m.among.MPI(), m.among.Now()
	for n := 0; x.Remains() != (mpi.Remains{}); n++ {
		switch waited := m.among.Now() - begun; {
		case again && waited > settling/100:
			return nil
		case waited > settling:
			var b strings.Builder
			x.Dump(&b)
			return fmt.Errorf("%w: %v\n%s", ErrLeak, x.Remains(), b.String())
		}
		m.idle(n)
	}
	return nil
}
