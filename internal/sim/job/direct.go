package job

import (
	"fmt"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/resume"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/sim/kernel"
	"github.com/openimpi/impi/internal/wireup"
)

// pair is a proc and its peer, from the point of view of the first one's node.
type pair struct{ local, peer wire.WorldRank }

func (x pair) back() pair { return pair{x.peer, x.local} }

// linking is a node's dial plan for the first link between two procs.
type linking struct {
	w         *Simulation
	p         *proc
	x         pair
	endpoints []dynamic.TransportAddress
	spec      kernel.LinkSpec
	l         *kernel.Link
	r         *resumed // nil: the link is not resumable
	slow      bool     // the last dial was greeted too slowly
	last      int      // the candidate of the last dial
}

func (w *Simulation) open(p *proc, peer wire.WorldRank) {
	x := pair{p.rank, peer}
	if linksOf(w, x).Request(x) {
		dialDirect(w, p, x)
	}
}

// dialDirect dials for a link that a proc has asked for.
func dialDirect(w *Simulation, p *proc, x pair) {
	d := &linking{w: w, p: p, x: x, endpoints: p.s.with(w.job.Procs.At(x.peer).Client).endpoints(), spec: w.cfg.Links.Direct}
	d.spec.Name = fmt.Sprintf("direct %d to %d", x.local, x.peer)
	limit := time.Duration(0)
	if w.cfg.Resume != nil {
		limit = w.cfg.Resume.Limit
	}
	s := w.dialling(dynamic.DirectLinkPlan(len(d.endpoints), &linksOf(w, x).Pairs, x, limit), func() bool { return p.s.left })
	s.isOnlyPlan(w, x)
	s.dial = func(step dynamic.DialStep, answer func(dynamic.DialResult)) {
		w.k.After(w.k.Between(10*time.Microsecond, 2*time.Millisecond), func() { d.dialled(step, answer) })
	}
	s.over = d.over
	s.begin()
}

func (w *Simulation) dialling(s *dynamic.DialPlan, gone func() bool) *dialling {
	return &dialling{DialPlan: s, k: w.k, gone: gone, ended: func() {}}
}

func (d *linking) dialled(step dynamic.DialStep, answer func(dynamic.DialResult)) {
	w, other := d.w, d.w.procs[d.x.peer]
	if other == nil { // its site has not started it yet
		w.k.After(retry, func() { d.dialled(step, answer) })
		return
	}
	if d.slow && d.last == step.Candidate {
		disorder(w, "rank %d dials rank %d again at once, which has greeted too slowly", d.x.local, d.x.peer)
	}
	d.slow, d.last = false, step.Candidate
	if a, failing := fails(w.k, w.cfg.DialFail); failing {
		answer(a)
		return
	}
	at, began := leg{d.p.h.rank, other.h.rank, d.endpoints[step.Candidate].Transport}, w.k.Now()
	state := d.p.s.listeners[at]
	reachProc(d.p.h, at.to, state.DialLimit(false), func(a dynamic.DialResult) {
		mustDial(w, at, state, w.k.Now()-began, a)
		answer(a)
	}, func() {
		if d.slow = w.cfg.Resume == nil && at.from != at.to && greetsNobody(w, at.to); d.slow {
			w.k.After(dynamic.GreetLimit, func() {
				answer(dynamic.DialResult{Err: errNoGreeting, Failure: dynamic.GreetingFailed(false, false, false)})
			})
			return
		}
		d.reached(other, step, answer)
	})
}

// reached makes a link, or a further connection of it, where the other host was reached.
func (d *linking) reached(other *proc, step dynamic.DialStep, answer func(dynamic.DialResult)) {
	w := d.w
	switch {
	case d.p.s.left:
	case d.p.s.pluginDown(w):
		answer(unheard(dynamic.NotListening))
	case step.Resumes:
		to := other.receiver()
		to.Allowed = other.s.with(d.p.s.rank).allows(d.endpoints[step.Candidate].Transport)
		_, v := linksOf(w, d.x.back()).ArriveAgain(w.time(), d.x.back(), dynamic.Hello{ResumableID: d.session(), Resumes: true}, to, w.cfg.Resume.Limit)
		if v != dynamic.Accepted {
			answer(said(v))
			return
		}
		d.l = d.r.below(nil)
		d.r.ends[1].take(d.l.Ends[1])
		answer(dynamic.DialResult{})
	default:
		d.connect(other, step, answer)
	}
}

// connect sends the greeting for a new link to the peer's node. The peer's proc gets the link
// first.
func (d *linking) connect(other *proc, step dynamic.DialStep, answer func(dynamic.DialResult)) {
	w, p, x := d.w, d.p, d.x
	if w.cfg.Resume != nil && step.Fresh {
		linksOf(w, x).Abandon(x, d.session())
		d.r = w.newResumed(d.spec, p.endpoint(), other.endpoint(), [2]resumedEnd{{alive: p.dials, gone: p.task.Ended}, {alive: other.dials, gone: other.task.Ended}})
		d.r.plugin = !w.drains.elsewhere || !p.s.drained && !other.s.drained
		d.r.tell()
	}
	broken := d.breaks()
	if broken == beforeProof {
		d.broken(false, answer)
		return
	}
	links, to := linksOf(w, x.back()), other.receiver()
	to.Allowed = other.s.with(p.s.rank).allows(d.endpoints[step.Candidate].Transport)
	if v := links.Arrive(x.back(), dynamic.Hello{ResumableID: d.session()}, to, x.local < x.peer); v != dynamic.Accepted {
		answer(said(v))
		return
	}
	if name := d.endpoints[step.Candidate].Transport; len(other.s.with(p.s.rank).usable([]string{name})) == 0 {
		disorder(w, "the link of ranks %d and %d is accepted by %s, which the route does not allow", x.local, x.peer, name)
	}
	if broken == beforeAnswer {
		w.k.After(w.k.Between(0, 300*time.Microsecond), func() {
			if links.LostBeforeUse(x.back()) {
				dialDirect(w, other, x.back())
			}
			d.broken(true, answer)
		})
		return
	}
	links.Given(x.back())
	var terms *wireup.Resumable
	if r := d.r; r != nil {
		d.l, terms = r.below(nil), r.terms(1)
		r.ends[0].take = func(e *kernel.End) { w.deliver(p, x.peer, r.further(), e) }
		r.ends[1].take = func(e *kernel.End) { w.deliver(other, x.local, r.further(), e) }
	} else {
		d.spec.Boxes = w.cfg.Boxes && p.h == other.h
		d.l = w.link(d.spec, p.endpoint(), other.endpoint())
		if d.spec.Boxes {
			w.boxed = append(w.boxed, d.l)
		}
	}
	w.deliver(other, x.local, terms, d.l.Ends[1])
	w.k.After(w.k.Between(0, 300*time.Microsecond), func() { // the peer's verdict arrives
		if broken == afterAnswer {
			d.l.Cut(errBroken)
			d.broken(true, answer)
			return
		}
		if p.s.left {
			_ = d.l.Ends[0].Close()
		}
		answer(dynamic.DialResult{})
	})
}

// breaking is where the greeting of a link breaks.
type breaking int

const (
	nowhere      breaking = iota
	beforeProof           // before the dialler has proved itself
	beforeAnswer          // the peer's node has accepted the link and cannot say so
	afterAnswer           // the peer's proc has the link, and the dialler does not know it
)

// breaks decides where the greeting of a link breaks. One that does not resume does not break when
// its peer has it, as that ends the job.
func (d *linking) breaks() breaking {
	w, most := d.w, afterAnswer
	chance := w.cfg.DialFail / 2
	if d.r != nil {
		chance = w.cfg.Resume.Cuts
	} else {
		most = beforeAnswer
	}
	if !w.k.Chance(chance) {
		return nowhere
	}
	return beforeProof + breaking(w.k.Rand().IntN(int(most)))
}

func (d *linking) broken(proved bool, answer func(dynamic.DialResult)) {
	failure := dynamic.GreetingFailed(proved, true, d.r != nil)
	if failure&dynamic.Uncertain != 0 {
		linksOf(d.w, d.x).Uncertain(d.x, d.session())
	}
	answer(dynamic.DialResult{Err: errBroken, Failure: failure})
}

func (d *linking) over(last dynamic.DialStep) {
	w, p, x := d.w, d.p, d.x
	switch last.Action {
	case dynamic.KeepLink:
		linksOf(w, x).Made(x, d.session())
		var terms *wireup.Resumable
		if d.r != nil {
			terms = d.r.terms(0)
		}
		w.deliver(p, x.peer, terms, d.l.Ends[0])
		return
	case dynamic.CloseLink:
		_ = d.l.Ends[0].Close()
	case dynamic.GiveUp:
		if last.Yielded {
			w.linkless = append(w.linkless, x)
		}
		p.give(wireup.Message{Kind: wireup.KindLink, Peer: x.peer, Reason: "it could not be dialled"}, nil)
	case dynamic.DialCandidate, dynamic.Pause, dynamic.PauseAfterRound, dynamic.Abandon: // the last step is none of these, or needs no action
	}
	linksOf(w, x).Abandon(x, d.session())
}

// session returns the session of the link that is being made; zero: it is not resumable.
func (d *linking) session() (id dynamic.ResumableID) {
	if d.r != nil {
		id = dynamic.ResumableID(d.r.session)
	}
	return id
}

func (x *resumed) further() *wireup.Resumable {
	return &wireup.Resumable{Session: x.session[:], Again: true}
}

func (w *Simulation) reopen(p *proc, m wireup.Message) {
	x, links := pair{p.rank, m.Peer}, &p.s.direct
	if s := links.Resumable.Get(x); s != nil && w.repairs[s] != nil {
		w.repairs[s].again = !m.Resumable.Over && s.Resumes != w.repairs[s].resumes
	}
	repair(w, p, x, links.Resumable.Repair(x, m.Resumable.Session, m.Resumable.Epoch, m.Resumable.Over), m.Resumable.Epoch)
}

// repairing is a repair of a link that is in progress.
type repairing struct {
	resumes int  // how often the link had been resumed when it began
	again   bool // the proc has lost a further connection since
}

// repair does what is to be done about a lost connection.
func repair(w *Simulation, p *proc, x pair, what dynamic.Repair, epoch uint64) {
	if what == dynamic.NoRepair || what == dynamic.NoSuchLink {
		return
	}
	state := p.s.direct.Resumable.Get(x)
	its := &repairing{resumes: state.Resumes}
	w.repairs[state] = its
	done := func(made bool, v dynamic.Verdict, reason string) {
		delete(w.repairs, state)
		tell, over := state.Repaired(what, made, v)
		if tell {
			p.give(wireup.Message{Kind: wireup.KindLink, Peer: x.peer, Reason: reason, Resumable: &wireup.Resumable{
				Session: state.ID[:], Again: true, Over: over,
			}}, nil)
		}
		next, epoch := state.Next()
		if its.again && !tell && next == dynamic.NoRepair {
			disorder(w, "the link of ranks %d and %d was lost again during a repair, which is forgotten", x.local, x.peer)
		}
		repair(w, p, x, next, epoch)
	}
	switch what {
	case dynamic.Redial:
		mustKnow(w, x)
		w.sessions[resume.ResumableID(state.ID)].dial(w.cfg.Resume.Limit, ways(p.s), func(plugin bool) (a dynamic.DialResult) {
			if v := arriveAgain(w, x.back(), dynamic.Hello{ResumableID: state.ID, Resumes: true}, plugin); v != dynamic.Accepted {
				a = said(v)
			}
			return a
		}, done)
	case dynamic.TellPeer:
		w.k.After(w.k.Between(10*time.Microsecond, 2*time.Millisecond), func() {
			v := arriveAgain(w, x.back(), dynamic.Hello{ResumableID: state.ID, Lost: true, Epoch: epoch}, true)
			answered := func() { done(v == dynamic.Accepted, v, "the other end has no such link") }
			if w.k.Chance(0.5) { // the way back is slow, and the other end dials meanwhile
				w.k.After(w.k.Between(0, 20*time.Second>>w.k.Rand().IntN(9)), answered)
				return
			}
			answered()
		})
	default:
	}
}

// linksOf returns the direct links of the node that has the first proc of a pair.
func linksOf(w *Simulation, x pair) *dynamic.DirectLinks[pair] {
	return &w.sites[w.job.Procs.At(x.local).Client].direct
}

// receiver returns what a proc's node knows of it when a link arrives.
func (p *proc) receiver() dynamic.Receiver {
	return dynamic.Receiver{Known: true, InMPI: !p.fini && !p.s.left, Finished: p.fini, Ended: p.judged}
}

// arriveAgain is what a node does with a further connection of a link, by the plugin or not, or with
// the word that the link is lost at its other end.
func arriveAgain(w *Simulation, x pair, h dynamic.Hello, plugin bool) dynamic.Verdict {
	links, p := linksOf(w, x), w.procs[x.local]
	to := p.receiver()
	to.Allowed, to.Leaves = true, plugin && p.s.drained && w.drains.elsewhere
	state, v := links.ArriveAgain(w.time(), x, h, to, w.cfg.Resume.Limit)
	if v == dynamic.Accepted && h.Lost && links.LostAtPeer(w.time(), state, h) {
		p.give(wireup.Message{Kind: wireup.KindLink, Peer: x.peer, Resumable: &wireup.Resumable{
			Session: state.ID[:], Again: true, Lost: true, Epoch: h.Epoch,
		}}, nil)
	}
	return v
}

func (p *proc) endpoint() Endpoint { return Endpoint{AtProc, int(p.rank)} }

func (p *proc) dials() bool { return p.s.works() && !p.crashed && !p.s.pluginDown(p.s.w) }

// deliver gives a link to its proc, some time after it was made.
func (w *Simulation) deliver(p *proc, peer wire.WorldRank, terms *wireup.Resumable, e *kernel.End) {
	w.k.After(w.k.Between(0, 100*time.Microsecond), func() {
		m := wireup.Message{Kind: wireup.KindLink, Peer: peer, Transport: "sim", Resumable: terms}
		if terms != nil && !terms.Again {
			m.Compress = compressOf(w)
		}
		p.give(m, e)
	})
}

func (s *site) pluginDown(w *Simulation) bool { return w.k.Now() < w.pluginsBack[s.rank] }

// crashPlugin kills the transport plugin of a site: existing links stay, and for a while no new
// ones can be made.
func (w *Simulation) crashPlugin(c wire.ClientRank) {
	w.pluginsBack[c] = w.k.Now() + w.k.Between(time.Millisecond, 20*time.Millisecond)
}

// again counts a further connection of a direct link at one end.
func (x *resumed) again(me int) {
	if x.away != nil || x.places[me].Kind != AtProc {
		return
	}
	at := pair{wire.WorldRank(x.places[me].Number), wire.WorldRank(x.places[1-me].Number)}
	if s := linksOf(x.w, at).Resumable.Get(at); s != nil && resume.ResumableID(s.ID) == x.session {
		s.Resumes++
	}
}
