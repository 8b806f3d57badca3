package job

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/route"
	"github.com/openimpi/impi/core/spawn"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
)

// Spare is a spare site of a job, of one host: it learns the job from the server, offers itself to
// all sites, and starts the parts of spawned worlds that name it.
type Spare struct {
	Slots  int           // slots for spawned procs
	Fails  float64       // probability that a dial of it fails
	Prefer []string      // transports by which it dials, best first: Plain and Encrypted; nil: Plain
	Comes  time.Duration // when its node starts
	Crash  time.Duration // when its node crashes; 0: it does not
	Cut    time.Duration // when its idle links are cut, which it then makes again; 0: they are not
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
	offers map[*site]*spareOffer
	untold bool            // a site had no link to tell it by that the job was over
	failed *ending.Failure // how the job has ended for this site, once home is done
}

// spareOffer is the offer of a spare site to the first host of another site.
type spareOffer struct {
	*spawn.HostOffer
	of    *spareSite
	to    *site
	ways  []dynamic.TransportAddress
	idle  *spareLink // nil: there is none
	dials bool
	began time.Time // when it was dialled first since it had a link
}

type spareLink struct {
	of          *spareSite
	to          *site
	near, there *conn // the spare site's end, and the other site's end
	over, taken bool
}

func addSpare(w *Simulation, i int) error {
	cfg := w.cfg.Spares[i]
	home := &site{w: w, rank: spareRank, cfg: Site{Params: w.cfg.Sites[0].Params, Hosts: []int{1}, Slots: cfg.Slots}}
	home.hosts = []*host{{s: home}}
	x := &spareSite{w: w, name: spareName(i), home: home, offers: make(map[*site]*spareOffer)}
	home.spawner = &spawner{k: w.k, asked: make(map[*part]func(spawn.SlotAnswer[*part])), changed: x.procsChanged}
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
				if l := x.idle(s); l != nil {
					l.near.end.Link().Cut(errors.New("the network was cut"))
				}
			}
		})
	}
	return nil
}

// loseServer has the server crash some time after all procs of the job are there, and all spare sites
// have offered themselves.
func loseServer(w *Simulation) {
	late := func(x *spareSite) bool {
		return !x.home.done && (x.job == nil || slices.ContainsFunc(w.sites, func(s *site) bool { return x.idle(s) == nil }))
	}
	switch {
	case w.Over():
	case !w.ready() || slices.ContainsFunc(w.spares, late):
		w.k.After(time.Millisecond, func() { loseServer(w) })
	default:
		w.k.After(w.cfg.ServerLost, func() { w.commit(Fault{Kind: CrashServer}) })
	}
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
			o := &spareOffer{HostOffer: spawn.NewHostOffer(silenceLimit), of: x, to: s}
			x.offers[s] = o
			o.with(func(time.Time) { o.Begin(x.home.spawner.slots.Taken()) })
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
		if o := x.offers[s]; o != nil {
			o.Stop()
		}
		if l := x.idle(s); l != nil {
			l.close("the spare site has left")
		}
	}
}

// idle returns the idle link to a site, or nil.
func (x *spareSite) idle(s *site) *spareLink {
	if o := x.offers[s]; o != nil {
		return o.idle
	}
	return nil
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

// with tells the offer of an event, and does what it says.
func (o *spareOffer) with(event func(now time.Time)) {
	w := o.of.w
	event(w.time())
	for x, ok := o.Next(); ok; x, ok = o.Next() {
		switch x.Action {
		case spawn.ListCandidates:
			o.ways = o.of.candidates(o.to)
			o.Candidates(w.time(), len(o.ways))
		case spawn.DialOffer:
			if o.dials = true; o.began.IsZero() {
				o.began = w.time()
			}
			w.k.After(w.k.Between(0, 2*time.Millisecond), func() { o.dial(x) })
		case spawn.OfferLinked:
			o.began = time.Time{}
			o.of.tell(func(e *ending.Spare) { e.AddHost(wire.HostRank(o.to.rank)) })
		case spawn.OfferLost:
			if tried := w.time().Sub(o.began); tried < silenceLimit*3/4 && !x.Final && w.wrong == nil {
				w.wrong = fmt.Errorf("%w: %s takes site %d for lost, which it has dialled for %v", ErrDisorder, o.of.name, o.to.rank, tried)
			}
			o.began = time.Time{}
			o.of.tell(func(e *ending.Spare) { e.HostLost(wire.HostRank(o.to.rank), siteName(int(o.to.rank))+" is gone") })
		}
	}
	if at, ok := o.Deadline(); ok {
		w.k.After(at.Sub(w.time()), func() {
			if due, ok := o.Deadline(); ok && due.Equal(at) {
				o.with(o.Tick)
			}
		})
	}
}

// candidates lists how a site can be dialled.
func (x *spareSite) candidates(s *site) []dynamic.TransportAddress {
	cfg, theirs := Site{Prefer: x.w.cfg.Spares[slices.Index(x.w.spares, x)].Prefer}, cardIn(x.job, s)
	ours := &dynamic.BusinessCard{Node: x.name, ByteOrder: dynamic.LittleEndian}
	for _, name := range cfg.listens() {
		ours.Addresses = append(ours.Addresses, dynamic.TransportAddress{Transport: name, Address: x.name})
	}
	r := route.Route{Direct: true, Prefer: cfg.prefer(), Secrecy: route.DemandOf(theirs, route.AnyClient)}
	return r.Addresses(func(name string) route.Transport { return transport(name) }, ours, theirs)
}

// dial is a dial by one of the candidates, and what the host answers.
func (o *spareOffer) dial(x spawn.OfferStep) {
	s, w := o.to, o.of.w
	if o.dials = false; o.Over() {
		return
	}
	a, failing := fails(w.k, w.cfg.Spares[slices.Index(w.spares, o.of)].Fails)
	switch {
	case s.left || s.dead || len(s.procs) == 0:
		a = unheard(dynamic.Unconnected | dynamic.NotListening)
	case !failing:
		if o.link(x) {
			o.with(func(now time.Time) { o.Dialled(now, dynamic.DialResult{}) })
		} else {
			o.with(func(time.Time) { o.Refused() })
		}
		return
	}
	o.with(func(now time.Time) { o.Dialled(now, a) })
}

func (x *spareSite) procsChanged() {
	for _, s := range x.w.sites {
		if o := x.offers[s]; o != nil {
			o.with(func(time.Time) { o.Changed(x.home.spawner.slots.Taken()) })
		}
	}
}

// link makes an idle link. It returns false if the site does not take it.
func (o *spareOffer) link(step spawn.OfferStep) (taken bool) {
	x, s := o.of, o.to
	if x.home.done {
		return true
	}
	k := x.w.k.NewLink(x.w.cfg.Worlds.cfg.Link, nil)
	l := &spareLink{of: x, to: s}
	gone := func(cause error) { l.ended(fmt.Sprint(cause)) }
	l.near = newConn(k.Ends[0], x.w.buf, func([]byte) {}, gone)
	l.there = newConn(k.Ends[1], x.w.buf, func([]byte) {}, gone)
	o.idle = l
	withSpareLinks(s, func(now time.Time) {
		offer := spawn.SpareOffer{Site: x.name, Instance: 1, To: wire.HostRank(s.rank), Procs: step.Procs}
		why := s.spareLinks.Offer(now, offer, l)
		if taken = why == ""; !taken {
			l.close(why)
		}
	})
	return taken
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
	if o := x.offers[s]; o.idle == l {
		o.idle = nil
		o.with(o.Ended)
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
			o := l.of.offers[s]
			if o.idle == l {
				o.idle = nil
			}
			s.w.k.After(0, func() {
				if o.idle == nil { // it was not replaced meanwhile
					o.with(func(time.Time) { o.Taken() })
				}
			})
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
		if w.a.Counts.Spares++; l.taken && s.w.wrong == nil {
			s.w.wrong = fmt.Errorf("%w: a link of %s was given to two spawns", ErrDisorder, l.of.name)
		}
		l.taken = true
		w.taken = append(w.taken, l)
		p.at = l.of.home
		w.ask(p)
	}
	withSpareLinks(s, func(now time.Time) { s.spareLinks.Ask(now, p, p.Spare, s.w.cfg.Limit) })
}

// mustOffer checks that a spare site has an idle link to a site whose part of the job ends, or is
// about to make one.
func (x *spareSite) mustOffer(s *site) {
	o := x.offers[s]
	if o == nil || o.idle != nil || o.dials || x.home.done {
		return
	}
	if _, waits := o.Deadline(); !waits && x.w.wrong == nil {
		x.w.wrong = fmt.Errorf("%w: %s does not offer itself to site %d any more", ErrDisorder, x.name, s.rank)
	}
}

func tellSpares(s *site, failure string) {
	for _, x := range s.w.spares {
		x.mustOffer(s)
		l := x.idle(s)
		if x.untold = x.untold || l == nil; l != nil {
			l.over = true
			x.offers[s].idle = nil
			l.near.close()
			l.there.close()
			x.w.k.After(x.w.k.Between(0, time.Millisecond), func() {
				x.offers[s].Stop()
				x.tell(func(e *ending.Spare) { e.HostOver(wire.HostRank(s.rank), failure) })
			})
		}
	}
}

// leaveSpares ends the links to spare sites as the kernel does for a process that has died.
func leaveSpares(s *site) {
	for _, x := range s.w.spares {
		if l := x.idle(s); l != nil {
			l.close("its process is gone")
		}
	}
}
