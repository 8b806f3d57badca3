package job

import (
	"fmt"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/names"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/meetings"
	"github.com/openimpi/impi/internal/sim/kernel"
	"github.com/openimpi/impi/internal/wireup"
)

// Worlds is what nodes do for procs of different jobs, all of them on one kernel:
// ports, calls of ports, and links between worlds. Make it with NewWorlds, and give
// it to the Configs of all.
type Worlds struct {
	k       *kernel.Kernel
	cfg     WorldsConfig
	worlds  []*World
	byName  map[dynamic.World]*World
	links   []*kernel.Link // that were made and may be in use
	spawns  int            // so far
	shared  *nameServer
	servers []*nameServer // that one, and those of jobs
	busy    int           // that are under way
	Counts  Counts
}

// WorldsConfig says how nodes of different jobs get on with each other.
type WorldsConfig struct {
	Link     kernel.LinkSpec // between procs of different worlds
	Names    names.Limits    // of name servers
	Backlog  int             // callers that may wait at a port; 0: as in the node
	DialFail float64         // how likely no link can be made, though both are there

	Calls CallObserver // if it is not nil

	// Spawn is the job of procs that are spawned at these sites, by the name of the program of the
	// first command. nil: there is none.
	Spawn func(program string, sites []Site) (*Config, error)
}

// CallObserver sees how calls of ports proceed.
type CallObserver interface {
	// Step says that a proc has come to one of the steps of connecting up to 5, as
	// core/mpi numbers them: 0, 3 and 4 are its port's, 1 and 2 its call's.
	Step(who dynamic.Member, step int)
	// Link announces the link of a call, whose first end is the caller's, and gives who
	// watches it.
	Link(caller, opener dynamic.Member) kernel.Watcher
}

// Counts are of what has happened between worlds.
type Counts struct {
	Calls, Refused, Waited   int // calls of ports; those that found none, or it full; those that waited there
	Links, Ties, Failed, Cut int // between worlds: made, lost ties, not made by chance
	Spawned, Unspawned       int // worlds; those that could not be
	Named, Misnamed          int // requests about names; those that have failed
	Renamed, Lost            int // names that were published again; those that could not be
}

// NewWorlds makes a place for jobs to meet.
func NewWorlds(k *kernel.Kernel, cfg WorldsConfig) *Worlds {
	if cfg.Link.Capacity == 0 {
		cfg.Link.Capacity = 64 << 10
	}
	a := &Worlds{k: k, cfg: cfg, byName: make(map[dynamic.World]*World)}
	a.shared = a.newNameServer()
	return a
}

// join adds a job.
func (a *Worlds) join(w *World) {
	w.number = len(a.worlds)
	a.worlds = append(a.worlds, w)
}

// describe gives what others have to know of the job, and the card of its procs.
func (w *World) describe() (world []byte, card string) {
	c := dynamic.Card{
		Version: dynamic.CardVersion, Node: fmt.Sprintf("w%d", w.number), ByteOrder: dynamic.LittleEndian,
		Offers: []dynamic.Offer{{Transport: "sim", Address: fmt.Sprintf("w%d", w.number)}},
	}
	world, err := w.job.Describe(func(wire.WorldRank) *dynamic.Card { return &c })
	if err != nil {
		panic(fmt.Sprintf("job: a world that cannot be described: %v", err))
	}
	text, err := c.AppendText(nil)
	if err != nil {
		panic(fmt.Sprintf("job: a card that cannot be written: %v", err))
	}
	w.cfg.Worlds.byName[w.Name()] = w
	return world, string(text)
}

// Name is that of the job's world, once that is known.
func (w *World) Name() dynamic.World {
	if w.job == nil {
		return dynamic.World{}
	}
	token := dynamic.Token(w.job.Token)
	return token.World()
}

// Rank is the proc's in its world.
func (p *proc) Rank() wire.WorldRank { return p.rank }

func (p *proc) member() dynamic.Member { return dynamic.Member{World: p.s.w.Name(), Rank: p.rank} }

// procOf gives a proc that has been started; nil if there is none.
func (a *Worlds) procOf(m dynamic.Member) *proc {
	w := a.byName[m.World]
	if w == nil || m.Rank < 0 || int(m.Rank) >= len(w.procs) {
		return nil
	}
	return w.procs[m.Rank]
}

// there tells whether a proc can be talked to.
func (p *proc) there() bool { return p != nil && !p.task.Ended() && !p.fini && !p.s.left }

type (
	meetingNode = meetings.Node[*proc, *kernel.End, struct{}]
	meetingStep = meetings.Step[*proc, *kernel.End]
)

// newMeetings makes what a node has to do with other worlds.
func newMeetings(s *site) *meetingNode {
	return &meetingNode{World: s.w.Name(), Able: s.job.AllOwn, Ports: dynamic.Ports[*proc, *kernel.End]{Gone: hungUp}}
}

// heard is a proc's message about other worlds. False: it is none.
func (a *Worlds) heard(p *proc, m *wireup.Message) (mine bool) {
	if a == nil {
		return false
	}
	if m.Kind == wireup.KindPort {
		a.opens(p, m.Meeting)
	}
	a.with(p.s, func(n *meetingNode) { mine = n.Heard(p.s.w.time(), p, *m) })
	return mine || a.spawnHeard(p, m)
}

// with has f tell a node's decisions of an event, and carries out the steps that follow.
func (a *Worlds) with(s *site, f func(*meetingNode)) {
	f(s.meets)
	for {
		x, ok := s.meets.Next()
		if !ok {
			return
		}
		a.carryOut(x)
	}
}

func (a *Worlds) carryOut(x meetingStep) {
	p := x.Proc
	switch x.Action {
	case meetings.Answer:
		a.tell(p, x.Message, nil)
	case meetings.Hand:
		a.step(p, 4)
		a.tell(p, x.Message, x.Conn)
	case meetings.Drop:
		_ = x.Conn.Close()
	case meetings.Complain:
		a.k.Note("%s opens a port that it cannot have: %s", p.title(), x.Message.Reason)
	case meetings.Connect:
		a.call(x)
	case meetings.Dial:
		a.dial(p, x.Pair)
	case meetings.AskNames:
		a.name(p, x.Message.Kind, x.Message.Meeting)
	case meetings.PortClosed:
		p.s.parents.worlds.PortClosed(x.Port)
	}
}

// under lets f, of a request of a proc that is under way, happen some time later. It ends the request.
func (a *Worlds) under(p *proc, least, most time.Duration, f func()) {
	a.busy++
	a.k.After(a.k.Between(least, most), func() {
		a.busy--
		a.with(p.s, func(n *meetingNode) { n.Ended(p) })
		if p.there() {
			f()
		}
	})
}

// gone ends what a proc had to do with other worlds. Its links are closed already.
func (a *Worlds) gone(p *proc) {
	if a == nil || p.s.meets == nil {
		return
	}
	a.with(p.s, func(n *meetingNode) { n.Gone(p) })
	p.s.parents.worlds.Gone(p)
}

// step tells the observer of calls.
func (a *Worlds) step(p *proc, step int) {
	if a.cfg.Calls != nil {
		a.cfg.Calls.Step(p.member(), step)
	}
}

// tell brings a message, and perhaps a link, from the node to a proc.
func (a *Worlds) tell(p *proc, m wireup.Message, e *kernel.End) {
	a.k.After(a.k.Between(0, 100*time.Microsecond), func() {
		if e == nil {
			p.give(m, nil)
			return
		}
		p.give(m, e)
		if m.Kind != wireup.KindLink {
			a.step(p, 5)
		}
	})
}

// Remains count what nodes and servers have.
type Remains struct {
	Ports    int
	Requests int // procs that have some under way
	Pairs    int // that have a link
	Links    int // that are not closed
	Slots    int // of spawned procs
	Names    int // that are published
}

// Left tells what there still is when all procs have left.
func (a *Worlds) Left() (r Remains) {
	for _, w := range a.worlds {
		for _, s := range w.sites {
			r.Slots += s.spawner.slots.Taken()
			if n := s.meets; n != nil {
				r.Ports += n.Ports.Len()
				r.Requests += n.Requesting()
				r.Pairs += n.Links.Pairs.Len()
			}
		}
	}
	for _, l := range a.links {
		if !l.Over() {
			r.Links++
		}
	}
	for _, s := range a.servers {
		r.Names += s.table.Len()
	}
	return r
}

// link makes a link between worlds.
func (a *Worlds) link(name string, w kernel.Watcher) *kernel.Link {
	spec := a.cfg.Link
	spec.Name = name
	l := a.k.NewLink(spec, w)
	kept := a.links[:0]
	for _, x := range a.links {
		if !x.Over() {
			kept = append(kept, x)
		}
	}
	a.links = append(kept, l)
	return l
}
