package job

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/spawn"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
)

type part struct {
	*spawn.PlacedPart
	of        *spawned
	at        *site // a site of a job that existed from the start
	granted   []int
	hostParts []spawn.HostPart
	site      *site // the site of the spawned world, perhaps shared with the neighbouring parts; nil: it was not started
	procs     int   // number of procs in MPI
	ended     bool
}

func (p *part) local() bool { return p.at == homeOf(p.of.parents) }

func (p *part) leaving() bool {
	return p.state().Leaving(p.site != nil && slices.ContainsFunc(p.site.procs, func(x *proc) bool { return x.fini }))
}

// state returns the state of the part's world, which only the node knows that has spawned it.
func (p *part) state() (s spawn.State) {
	if p.local() {
		s = p.of.State()
	}
	return s
}

// tell runs f at the node that spawns, or at another one that has a part of the world.
func (p *part) tell(f func()) {
	if p.local() {
		f()
		return
	}
	p.of.a.after(2*time.Millisecond, f)
}

func (p *part) reserve(answer func(spawn.Reply)) {
	r := p.Part.Check()
	if r == nil && p.at.left && !p.local() {
		r = spawn.Refuse(-1, "site %d is ending", p.at.rank)
	}
	wish, problem := spawn.NewSlotRequest(p.Commands, p.hosts())
	if r = cmp.Or(r, problem); r != nil {
		answer(spawn.Reply{Refused: r})
		return
	}
	d := p.at.spawner
	d.asked[p] = func(a spawn.SlotAnswer[*part]) {
		p.granted, p.hostParts = a.Granted, a.HostParts
		answer(spawn.Reply{Granted: a.Granted, Refused: a.Refused})
	}
	d.withSlots(func(now time.Time) {
		d.slots.Reserve(now, p, wish)
	})
}

func (p *part) hosts() (hosts []int) {
	if p.local() {
		return p.PlacedPart.Hosts
	}
	for i := range p.at.hosts {
		if p.Host == "" && (i == 0 || p.at.machines != nil) || p.Host == address(p.at.rank, i).Addr().String() {
			hosts = append(hosts, i)
		}
	}
	return hosts
}

// parts are the parts of a spawned world that one of its sites has.
type parts []*part

// procOf returns the part of a proc of the site, and its command among all of the spawn.
func (all parts) procOf(local int) (p *part, command int) {
	for _, p := range all {
		for i := range p.hostParts {
			for c, n := range p.hostParts[i].Procs {
				if local < n {
					return p, p.Commands[c].Number
				}
				local -= n
			}
		}
	}
	panic("job: a proc of no command")
}

func (p *part) inMPI() {
	if p.procs++; p.procs < total(p.granted) {
		return
	}
	p.tell(func() {
		if p.of.PartInInit() {
			p.of.started()
		}
	})
}

func (p *part) end(why string) {
	switch {
	case p.site == nil:
		p.at.spawner.withSlots(func(time.Time) { p.at.spawner.slots.Release(p) })
	case !p.site.left:
		p.site.fail(ending.EndedByParents(why))
	}
}

func (p *part) gone() {
	if p.ended {
		return
	}
	p.ended = true
	w, d := p.of, p.at.spawner
	w.a.after(200*time.Microsecond, func() {
		d.running = slices.DeleteFunc(d.running, func(x *part) bool { return x == p })
		d.withSlots(func(time.Time) { d.slots.Release(p) })
		p.tell(func() {
			w.refuse(spawn.Refuse(-1, "%s: %v", w.name, p.site.err))
			w.answerRefused()
			w.check()
		})
	})
}

// Spare is a spare site of a job, of one host: it learns the job from the server, offers itself to
// all sites, and starts the parts of spawned worlds that name it.
type Spare struct {
	Slots int           // slots for spawned procs
	Comes time.Duration // when its node starts
	Crash time.Duration // when its node crashes; 0: it does not
	Cut   time.Duration // when its idle links are cut, which it then makes again; 0: they are not
}

// spareName is what the info key host has for a spare site.
func spareName(i int) string { return fmt.Sprintf("spare%d", i) }

// spareRank is in the addresses of spare sites, which are no clients.
const spareRank wire.ClientRank = 200

type spareSite struct {
	w      *Simulation
	name   string
	home   *site // the site that has the slots; no client of the job
	client *startup.Client
	conn   *conn
	job    *startup.Job
	ends   ending.Spare
	idle   map[*site]*spareLink
	failed *ending.Failure // how the job has ended for this site, once home is done
}

type spareLink struct {
	of          *spareSite
	to          *site
	near, there *conn // the spare site's end, and the other site's end
	over        bool
}

func addSpare(w *Simulation, i int) error {
	cfg := w.cfg.Spares[i]
	home := &site{w: w, rank: spareRank, cfg: Site{Params: startup.DefaultParams(), Hosts: []int{1}, Slots: cfg.Slots}}
	home.hosts = []*host{{s: home}}
	x := &spareSite{w: w, name: spareName(i), home: home, idle: make(map[*site]*spareLink)}
	home.spawner = &spawner{k: w.k, asked: make(map[*part]func(spawn.SlotAnswer[*part])), changed: x.offerAgain}
	home.spawner.slots = spawn.Slots[*part]{Site: x.name, Total: cfg.Slots, Procs: []int{1}, Leaving: (*part).leaving}
	var err error
	if x.client, err = startup.NewClient(startup.ClientConfig{Spare: true, Auth: w.cfg.Auth, Limit: w.cfg.Limit}); err != nil {
		return err
	}
	w.spares = append(w.spares, x)
	w.k.After(cfg.Comes, x.connect)
	if cfg.Crash > 0 {
		w.k.After(cfg.Crash, x.crash)
	}
	if cfg.Cut > 0 {
		w.k.After(cfg.Cut, func() {
			for _, s := range w.sites {
				if l := x.idle[s]; l != nil {
					l.near.end.Link().Cut(errors.New("the network was cut"))
				}
			}
		})
	}
	return nil
}

func (x *spareSite) connect() {
	if x.home.done {
		return
	}
	l := x.w.k.NewLink(x.w.cfg.Links.Server, nil)
	x.conn = newConn(l.Ends[0], x.w.buf, func(b []byte) { x.hear(x.client.Receive(b, x.w.time())) }, func(cause error) {
		x.hear(x.client.Closed(cause))
		if x.client.Err() == nil {
			x.tell(func(e *ending.Spare) { e.ServerReported(nil) })
		}
	})
	x.w.k.After(x.w.k.Between(0, x.w.cfg.Links.Server.Delay), func() { x.w.server.connect(l.Ends[1], "10.200.0.1:4000") })
	x.client.Start(x.w.time())
	x.conn.send(x.client.Output())
}

// hear goes on after what the server has said. err is that of startup.
func (x *spareSite) hear(err error) {
	if x.home.done {
		return
	}
	if b := x.client.Output(); len(b) > 0 {
		x.conn.send(b)
	}
	switch job, ok := x.client.Job(); {
	case err != nil && x.job != nil && startup.OutcomeAtServer(err) != startup.JobFailed:
		x.tell(func(e *ending.Spare) { e.ServerLost(err.Error()) })
	case err != nil:
		f := ending.ServerFailure(err, x.job != nil, func(c wire.ClientRank) string { return siteName(int(c)) })
		x.tell(func(e *ending.Spare) { e.ServerReported(f) })
	case ok && x.job == nil:
		x.job = job
		for _, s := range x.w.sites {
			x.ends.AddHost(wire.HostRank(s.rank))
			x.offer(s)
		}
	}
}

func (x *spareSite) tell(f func(*ending.Spare)) {
	f(&x.ends)
	if why, over := x.ends.Over(); over && !x.home.done {
		x.failed = why
		x.leave()
		x.conn.finish()
	}
}

// leave ends the offers. What was spawned there goes on.
func (x *spareSite) leave() {
	x.home.left, x.home.done = true, true
	for _, s := range x.w.sites {
		if l := x.idle[s]; l != nil {
			l.close("the spare site has left")
		}
	}
}

func (x *spareSite) crash() {
	if x.home.done {
		return
	}
	x.home.dead = true
	x.leave()
	if x.conn != nil {
		x.conn.close()
	}
	for _, p := range slices.Clone(x.home.spawner.running) {
		p.site.crash()
	}
}

func (x *spareSite) offer(s *site) {
	x.w.k.After(x.w.k.Between(0, 2*time.Millisecond), func() {
		switch {
		case x.home.done:
		case s.left || s.dead:
			x.tell(func(e *ending.Spare) { e.HostLost(wire.HostRank(s.rank), siteName(int(s.rank))+" is gone") })
		case len(s.procs) == 0:
			x.w.k.After(retry, func() { x.offer(s) })
		default:
			x.link(s)
		}
	})
}

func (x *spareSite) offerAgain() {
	for _, s := range x.w.sites {
		if x.idle[s] != nil && !x.home.done {
			x.offer(s)
		}
	}
}

func (x *spareSite) link(s *site) {
	k := x.w.k.NewLink(x.w.cfg.Worlds.cfg.Link, nil)
	l := &spareLink{of: x, to: s}
	gone := func(cause error) { l.ended(fmt.Sprint(cause)) }
	l.near = newConn(k.Ends[0], x.w.buf, func([]byte) {}, gone)
	l.there = newConn(k.Ends[1], x.w.buf, func([]byte) {}, gone)
	x.idle[s] = l
	withSpareLinks(s, func(now time.Time) {
		o := spawn.SpareOffer{Site: x.name, Instance: 1, To: wire.HostRank(s.rank), Procs: x.home.spawner.slots.Taken()}
		if why := s.spareLinks.Offer(now, o, l); why != "" {
			l.close(why)
		}
	})
}

func (l *spareLink) close(why string) {
	l.near.close()
	l.there.close()
	l.ended(why)
}

// ended is the end of a link, whoever has ended it. Another one takes the place of an idle one.
func (l *spareLink) ended(why string) {
	if l.over {
		return
	}
	l.over = true
	x, s := l.of, l.to
	if !s.dead {
		withSpareLinks(s, func(now time.Time) { s.spareLinks.Ended(now, l, why) })
	}
	if x.idle[s] != l {
		return
	}
	delete(x.idle, s)
	if !x.home.done {
		x.w.k.After(retry, func() { x.offer(s) })
	}
}

func withSpareLinks(s *site, f func(now time.Time)) {
	f(s.w.time())
	for step, ok := s.spareLinks.Next(); ok; step, ok = s.spareLinks.Next() {
		if l := step.Drop; l != nil {
			l.over = true // the spare site has made another link
			l.near.close()
			l.there.close()
			continue
		}
		answer := s.asked[step.By]
		delete(s.asked, step.By)
		if l := step.Link; l != nil {
			delete(l.of.idle, s)
			l.of.offer(s)
		}
		answer(step.Link, step.Reason)
	}
	if at, ok := s.spareLinks.Deadline(); ok {
		s.w.k.After(at.Sub(s.w.time()), func() { withSpareLinks(s, s.spareLinks.Tick) })
	}
}

func (w *spawned) askSpare(p *part) {
	s := homeOf(w.parents)
	s.asked[p] = func(l *spareLink, why string) {
		if l == nil {
			w.refuse(p.Commands[0].Refuse(why))
			w.reserve()
			return
		}
		w.taken = append(w.taken, l)
		p.at = l.of.home
		w.ask(p)
	}
	withSpareLinks(s, func(now time.Time) { s.spareLinks.Ask(now, p, p.Spare, s.w.cfg.Limit) })
}

func tellSpares(s *site, failure string) {
	for _, x := range s.w.spares {
		if l := x.idle[s]; l != nil {
			l.over = true
			delete(x.idle, s)
			l.near.close()
			l.there.close()
			x.w.k.After(x.w.k.Between(0, time.Millisecond), func() {
				x.tell(func(e *ending.Spare) { e.HostOver(wire.HostRank(s.rank), failure) })
			})
		}
	}
}

// leaveSpares ends the links to spare sites as the kernel does for a process that has died.
func leaveSpares(s *site) {
	for _, x := range s.w.spares {
		if l := x.idle[s]; l != nil {
			l.close("its process is gone")
		}
	}
}
