package job

import (
	"cmp"
	"fmt"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/names"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/meetings"
	"github.com/openimpi/impi/internal/sim/kernel"
	"github.com/openimpi/impi/internal/wireup"
)

// Worlds simulates what nodes do for procs of different jobs, all of them on one kernel: ports,
// connects to ports, and links between worlds. Make it with NewWorlds, and set it in the Configs of
// all jobs.
type Worlds struct {
	k       *kernel.Kernel
	cfg     WorldsConfig
	worlds  []*Simulation
	byName  map[dynamic.WorldID]*Simulation
	links   []worldLink // links that were made and may be in use
	spawns  int         // number of spawns so far
	shared  *nameServer
	servers []*nameServer // shared servers, and those of jobs
	busy    int           // operations that are under way
	Counts  Counts
}

// WorldsConfig has the settings for nodes of different jobs that work together.
type WorldsConfig struct {
	Link     kernel.LinkSpec // links between procs of different worlds
	Names    names.Limits    // of name servers
	Backlog  int             // callers that may wait at a port; 0: the node's own limit
	DialFail float64         // probability that a link cannot be made, though both ends are there
	Resume   *Resume         // links between procs of different worlds are resumed; nil: they are not

	Calls CallObserver // may be nil

	// Spawn returns the job of procs that are spawned at these sites, by the program's name of the
	// first command; nil if nothing is spawned.
	Spawn func(program string, sites []Site) (*Config, error)
}

// CallObserver sees the steps of connecting at ports.
type CallObserver interface {
	// Step is called when a proc has come to one of the steps of connecting up to 5, numbered as in
	// core/mpi: 0, 3 and 4 are steps of the port's proc, 1 and 2 of the caller.
	Step(who dynamic.WorldProc, step int)
	// Link announces the link of a call, whose first end is the caller's, and returns its watcher.
	Link(caller, opener dynamic.WorldProc) kernel.Watcher
}

// Counts are the numbers of events between worlds.
type Counts struct {
	Connects                 int // to ports
	Refused, Waited          int // connects that found no port or a full one; those that waited at a port
	Dials                    int // for links between worlds
	Links, Ties, Failed, Cut int // between worlds: made, made by both ends at once, not made by chance, cut
	Spawned, Unspawned       int // worlds; spawns that failed
	Spares                   int // parts for which a spare site was asked
	Named, Misnamed          int // requests about names; those requests that failed
	Resumed                  int // links between worlds that were resumed
	Broken                   int // links between worlds that broke between their acceptance and their use
	Renamed, Lost            int // names that were published again; names that could not be published again
}

// NewWorlds makes the place where jobs meet.
func NewWorlds(k *kernel.Kernel, cfg WorldsConfig) *Worlds {
	cfg.Link.Capacity = cmp.Or(cfg.Link.Capacity, 64<<10)
	if cfg.Resume != nil {
		cfg.Resume = cfg.Resume.withDefaults()
	}
	a := &Worlds{k: k, cfg: cfg, byName: make(map[dynamic.WorldID]*Simulation)}
	a.shared = a.newNameServer()
	return a
}

func (a *Worlds) join(w *Simulation) {
	w.number = len(a.worlds)
	a.worlds = append(a.worlds, w)
}

// describe returns what other jobs must know of the job.
func (w *Simulation) describe() []byte {
	j := *w.job
	j.Procs = startup.Procs{}
	for _, x := range w.job.Procs.All() {
		x.Card = worldCard(w.sites[x.Client].hosts[x.Host-j.Clients[x.Client].FirstHost])
		j.Procs.Add(x)
	}
	head, err := j.Describe()
	if err != nil {
		panic(fmt.Sprintf("job: a world that cannot be described: %v", err))
	}
	w.cfg.Worlds.byName[w.Name()] = w
	return j.Procs.Describe(head)
}

// worldCard returns the business card of a host's procs for other worlds.
func worldCard(h *host) []byte {
	name := fmt.Sprintf("w%ds%dh%d", h.s.w.number, h.s.rank, h.number)
	c := dynamic.BusinessCard{
		Version: dynamic.CardVersion, Node: name, ByteOrder: dynamic.LittleEndian,
		Addresses: []dynamic.TransportAddress{{Transport: "sim", Address: name}},
	}
	if h.s.w.cfg.Worlds.cfg.Resume != nil {
		c.Features = []string{dynamic.ResumeWorldsFeature}
	}
	text, err := c.AppendText(nil)
	if err != nil {
		panic(fmt.Sprintf("job: a card that cannot be written: %v", err))
	}
	return text
}

// Name returns the name of the job's world, once it is known.
func (w *Simulation) Name() dynamic.WorldID {
	if w.job == nil {
		return dynamic.WorldID{}
	}
	token := dynamic.Token(w.job.Token)
	return token.World()
}

// Rank returns the proc's rank in its world.
func (p *proc) Rank() wire.WorldRank { return p.rank }

func (p *proc) member() dynamic.WorldProc {
	return dynamic.WorldProc{World: p.s.w.Name(), Rank: p.rank}
}

// procOf returns a proc that has been started; nil if there is none.
func (a *Worlds) procOf(m dynamic.WorldProc) *proc {
	w := a.byName[m.World]
	if w == nil || m.Rank < 0 || int(m.Rank) >= len(w.procs) {
		return nil
	}
	return w.procs[m.Rank]
}

func (p *proc) there() bool { return p != nil && !p.task.Ended() && !p.fini && !p.s.left }

type (
	meetingNode = meetings.Node[*proc, *kernel.End, struct{}]
	meetingStep = meetings.Step[*proc, *kernel.End]
)

func newMeetings(s *site) *meetingNode {
	return &meetingNode{World: s.w.Name(), Able: s.job.AllOwn, Resume: s.w.cfg.Worlds.resumeLimit, Ports: dynamic.Ports[*proc, *kernel.End]{ConnClosed: hungUp}}
}

// heard handles a proc's message about other worlds. It returns false for other messages.
func (a *Worlds) heard(p *proc, m *wireup.Message) (mine bool) {
	if a == nil {
		return false
	}
	if m.Kind == wireup.KindPort {
		a.opens(p, m.Meeting)
	}
	a.with(p.h, func(n *meetingNode) { mine = n.HandleMessage(p.s.w.time(), p, *m) })
	return mine || a.spawnHeard(p, m)
}

func (a *Worlds) with(h *host, f func(*meetingNode)) {
	f(h.meets)
	for {
		x, ok := h.meets.Next()
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
	case meetings.PassConn:
		a.step(p, 4)
		a.tell(p, x.Message, x.Conn)
	case meetings.Drop:
		_ = x.Conn.Close()
	case meetings.ReportToOperator:
		a.k.Tracef("%s opens a port that it cannot have: %s", p.title(), x.Message.Reason)
	case meetings.Connect:
		a.call(x)
	case meetings.Dial:
		a.dial(x)
	case meetings.RepairLink:
		a.repair(x)
	case meetings.AskNames:
		a.name(p, x.Message.Kind, x.Message.Meeting)
	case meetings.PortClosed:
		p.s.parents.worlds.PortClosed(x.Port)
	}
}

// under runs f some time later, as part of a proc's request that is under way, and ends the
// request.
func (a *Worlds) under(p *proc, least, most time.Duration, f func()) {
	a.busy++
	a.k.After(a.k.Between(least, most), func() {
		a.busy--
		a.with(p.h, func(n *meetingNode) { n.Ended(p) })
		if p.there() {
			f()
		}
	})
}

// gone ends everything that a proc had to do with other worlds. Its links are closed already.
func (a *Worlds) gone(p *proc) {
	if a == nil || p.h.meets == nil {
		return
	}
	a.with(p.h, func(n *meetingNode) { n.ProcEnded(p) })
	p.s.parents.worlds.ProcEnded(p)
}

func (a *Worlds) step(p *proc, step int) {
	if a.cfg.Calls != nil {
		a.cfg.Calls.Step(p.member(), step)
	}
}

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

// Remains counts what is left at nodes and servers.
type Remains struct {
	Ports    int
	Requests int // procs with requests under way
	Pairs    int // pairs that have a link
	Sessions int // links that may be resumed
	Links    int // links that are not closed
	Slots    int // of spawned procs
	Names    int // that are published
}

// Left returns what is left when all procs have left.
func (a *Worlds) Left() (r Remains) {
	for _, w := range a.worlds {
		for _, x := range w.spares {
			r.Slots += x.home.spawner.slots.Taken()
		}
		for _, s := range w.sites {
			r.Slots += s.spawner.slots.Taken()
			for _, h := range s.hosts {
				if n := h.meets; n != nil {
					r.Ports += n.Ports.Len()
					r.Requests += n.ProcsWithRequests()
					r.Pairs += n.Links.Pairs.Len()
					r.Sessions += n.Links.Resumable.Len()
				}
			}
		}
	}
	for _, l := range a.links {
		if !l.l.Over() {
			r.Links++
		}
	}
	for _, s := range a.servers {
		r.Names += s.table.Len()
	}
	return r
}

func (a *Worlds) link(name string, w kernel.Watcher, of ...*proc) *kernel.Link {
	spec := a.cfg.Link
	spec.Name = name
	return a.keep(worldLink{l: a.k.NewLink(spec, w), of: of})
}

func (a *Worlds) keep(x worldLink) *kernel.Link {
	kept := a.links[:0]
	for _, x := range a.links {
		if !x.l.Over() {
			kept = append(kept, x)
		}
	}
	a.links = append(kept, x)
	return x.l
}
