package job

import (
	"errors"
	"fmt"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/resume"
	"github.com/openimpi/impi/internal/meetings"
	"github.com/openimpi/impi/internal/sim/kernel"
	"github.com/openimpi/impi/internal/wireup"
)

// worldCandidates is the number of transports by which procs of different worlds are dialled.
const worldCandidates = 2

// approach is a node's search for a link to a proc of another world.
type approach struct {
	*Worlds
	p        *proc
	x        dynamic.WorldPair
	question meetings.QuestionID
	resume   time.Duration // how long the link may be without a connection; 0: it does not resume
	s        *dialling
	l        *kernel.Link
	r        *resumed // of the link that is being made; nil: it does not resume
}

func (a *Worlds) dial(what meetingStep) {
	p, x := what.Proc, what.Pair
	d := &approach{Worlds: a, p: p, x: x, question: what.Question, resume: what.Limit}
	d.s = p.s.w.dialling(dynamic.WorldLinkPlan(worldCandidates, &p.h.meets.Links.Pairs, x, what.Limit), func() bool { return !p.there() })
	d.s.isOnlyPlan(p.s.w, x)
	d.s.dial = func(step dynamic.DialStep, answered func(dynamic.DialResult)) {
		a.Counts.Dials++
		a.with(p.h, func(n *meetingNode) { n.Dialling(d.question) })
		answer := func(v dynamic.DialResult) {
			a.with(p.h, func(n *meetingNode) {
				if v.Failure&dynamic.Uncertain != 0 {
					n.Links.Uncertain(x, d.session())
				}
				n.Dialled(d.question, v)
			})
			answered(v)
		}
		a.k.After(a.k.Between(10*time.Microsecond, 2*time.Millisecond), func() {
			switch {
			case !p.there():
				d.s.ended()
				d.s.left()
			case p.h.meets.Links.Pairs.State(x) != dynamic.Dialling: // the other end's link has arrived; a dial never takes longer than that
				answer(unheard(0))
			default:
				d.dialled(step, answer)
			}
		})
	}
	d.s.over = func(last dynamic.DialStep) {
		d.ended(last, errors.New("it could not be dialled"))
		if last.Action == dynamic.KeepLink {
			a.deliver(p, x, d.l.Ends[0], d.r, 0)
		}
	}
	d.s.left = func() {
		if d.l != nil {
			_ = d.l.Ends[0].Close()
		}
		d.ended(dynamic.DialStep{Action: dynamic.Abandon}, nil)
	}
	d.s.begin()
}

func (d *approach) ended(last dynamic.DialStep, why error) {
	d.with(d.p.h, func(n *meetingNode) {
		if last.Action == dynamic.KeepLink {
			n.Links.Made(d.x, d.session())
		} else {
			n.Links.Abandon(d.x, d.session())
		}
		n.SearchEnded(d.p, d.x, d.question, last, why)
	})
}

// session returns the session of the link that is being made; zero: it does not resume.
func (d *approach) session() (id dynamic.ResumableID) {
	if d.r != nil {
		id = dynamic.ResumableID(d.r.session)
	}
	return id
}

// dialled is what the peer's node does. The dialler learns of that after a while.
func (d *approach) dialled(step dynamic.DialStep, answer func(dynamic.DialResult)) {
	other := d.procOf(d.x.Peer)
	if step.Fresh {
		d.with(d.p.h, func(n *meetingNode) { n.Links.Abandon(d.x, d.session()) })
		d.r = nil
	}
	if v := unreachable(other); v.Err != nil {
		answer(v)
		return
	}
	if d.resume > 0 && d.r == nil {
		d.r = d.newResumed(d.p, other)
	}
	if step.Resumes {
		var v dynamic.Verdict
		if v = d.arriveAgain(other, d.x.Reversed(), dynamic.Hello{ResumableID: d.session(), Resumes: true}); v != dynamic.Accepted {
			answer(said(v))
			return
		}
		d.l = d.r.below(nil)
		d.r.ends[1].take(d.l.Ends[1])
		d.k.After(d.k.Between(0, 300*time.Microsecond), func() { answer(dynamic.DialResult{}) })
		return
	}
	d.greeted(other, answer)
}

// greeted sends the greeting for a new link to the peer's node.
func (d *approach) greeted(other *proc, answer func(dynamic.DialResult)) {
	a, x := d.Worlds, d.x
	broken := a.breaks(d.s, d.r)
	failed := func(proved bool) {
		answer(dynamic.DialResult{Err: errBroken, Failure: dynamic.GreetingFailed(proved, true, d.r != nil)})
	}
	switch {
	case broken == nowhere:
	case a.k.Chance(0.5):
		answer(unheard([]dynamic.DialFailure{0, dynamic.NotListening, dynamic.NoRoom}[a.k.Rand().IntN(3)]))
		return
	case broken == beforeProof:
		failed(false)
		return
	}
	var v dynamic.Verdict
	a.with(other.h, func(n *meetingNode) { v = n.Arrive(x.Reversed(), d.session(), other.meeting()) })
	if v != dynamic.Accepted {
		a.Counts.Ties++
		answer(said(v))
		return
	}
	if broken == beforeAnswer {
		a.k.After(a.k.Between(0, 300*time.Microsecond), func() {
			if other.there() {
				a.Counts.Broken++
				a.with(other.h, func(n *meetingNode) { n.AcceptedLinkLost(other, x.Reversed()) })
			}
			failed(true)
		})
		return
	}
	a.Counts.Links++
	if d.r != nil {
		d.l = d.r.below(nil)
	} else {
		d.l = a.link(fmt.Sprintf("link of %s to %s", d.p.title(), other.title()), nil, d.p, other)
	}
	l := d.l
	a.deliver(other, x.Reversed(), l.Ends[1], d.r, 1)
	a.k.After(a.k.Between(0, 300*time.Microsecond), func() { // the peer's answer arrives
		if broken == afterAnswer {
			l.Cut(errBroken)
			failed(true)
			return
		}
		answer(dynamic.DialResult{})
	})
}

// unreachable returns why no node answers for a proc; no error: one does.
func unreachable(p *proc) dynamic.DialResult {
	switch {
	case p != nil && (p.s.dead || p.h.gone):
		return unheard(dynamic.NotListening)
	case p == nil || p.s.left: // it has not begun yet, or there is no node any more
		return said(dynamic.Leaving)
	}
	return dynamic.DialResult{}
}

// meeting returns what a proc's node knows of it when a link from another world arrives.
func (p *proc) meeting() meetings.Receiver {
	return meetings.Receiver{Known: true, State: p.standing().State, Ended: p.judged, Allowed: true}
}

// breaks decides where the greeting of a link to another world breaks, once for each dial plan, as
// the procs fail if there is no link; r is nil for one that does not resume.
func (a *Worlds) breaks(s *dialling, r *resumed) breaking {
	if s.unmet > 0 || !a.k.Chance(a.cfg.DialFail) {
		return nowhere
	}
	s.unmet++
	a.Counts.Failed++
	most := beforeAnswer
	if r != nil {
		most = afterAnswer
	}
	return beforeProof + breaking(a.k.Rand().IntN(int(most)))
}

// deliver gives a new link to the proc at end me; r is nil for one that does not resume.
func (a *Worlds) deliver(p *proc, x dynamic.WorldPair, e *kernel.End, r *resumed, me int) {
	m := p.h.meets.SetLink(x, struct{}{})
	m.Transport = "sim"
	if r != nil {
		m.Resumable = r.terms(me)
	}
	a.tell(p, m, e)
}

func (a *Worlds) opens(p *proc, x *wireup.OtherWorld) {
	x.Backlog = a.cfg.Backlog
	if x.Timeout > 0 {
		a.k.After(x.Timeout, func() { a.with(p.h, func(n *meetingNode) { n.Tick(p.s.w.time()) }) })
	}
	a.step(p, 0)
}

func hungUp(e *kernel.End) bool { return e.HasEnd() || !e.Open() }

func (a *Worlds) call(x meetingStep) {
	p, port := x.Proc, x.Token.World()
	a.Counts.Connects++
	a.step(p, 1)
	a.busy++
	s := p.s.w.dialling(dynamic.ConnectPlan(2), func() bool { return !p.there() })
	s.left = func() {
		a.busy--
		a.with(p.h, func(n *meetingNode) { n.Ended(p) })
	}
	s.dial = func(_ dynamic.DialStep, answer func(dynamic.DialResult)) {
		a.k.After(a.k.Between(10*time.Microsecond, 2*time.Millisecond), func() {
			if !p.there() {
				s.left()
				return
			}
			answer(a.called(p, x.Request, port, a.breaks(s, nil)))
		})
	}
	s.over = func(last dynamic.DialStep) {
		if s.left(); last.Action == dynamic.GiveUp {
			a.Counts.Refused++
			a.with(p.h, func(n *meetingNode) { n.ConnectFailed(p, x.Request, fmt.Errorf("%v", s.FailedCandidates())) })
		}
	}
	s.begin()
}

// portAt returns the host that has an open port; nil: none has.
func (a *Worlds) portAt(port dynamic.WorldID) *host {
	for _, w := range a.worlds {
		for _, s := range w.sites {
			for _, h := range s.hosts {
				if h.meets == nil {
					continue
				}
				if _, open := h.meets.Ports.Key(port); open {
					return h
				}
			}
		}
	}
	return nil
}

// called is what the node does that has a port which a proc of another world dials.
func (a *Worlds) called(p *proc, request uint64, port dynamic.WorldID, broken breaking) dynamic.DialResult {
	at, no := a.portAt(port), dynamic.ClosedPort
	if broken == beforeProof {
		return dynamic.DialResult{Err: errBroken, Failure: dynamic.GreetingFailed(false, true, false)}
	}
	if at != nil {
		a.with(at, func(n *meetingNode) { no = n.Reserve(port, true) })
	}
	if no != dynamic.Accepted {
		return said(no)
	}
	if broken == beforeAnswer {
		a.with(at, func(n *meetingNode) { n.Release(port) })
		return dynamic.DialResult{Err: errBroken, Failure: dynamic.GreetingFailed(true, true, false)}
	}
	owner, _ := at.meets.Ports.Owner(port)
	var watch kernel.Watcher
	if a.cfg.Calls != nil {
		watch = a.cfg.Calls.Link(p.member(), owner.member())
	}
	a.step(p, 2)
	l := a.link(fmt.Sprintf("call of %s by %s", owner.title(), p.title()), watch)
	a.tell(p, meetings.Connected(request), l.Ends[0])
	a.with(at, func(n *meetingNode) {
		if !n.Admit(port, l.Ends[1]) {
			a.Counts.Waited++
			a.step(owner, 3)
			a.step(p, 3)
		}
	})
	return dynamic.DialResult{}
}

// title names a proc among those of all worlds: b2 is rank 2 of the second.
func (p *proc) title() string { return fmt.Sprintf("%c%d", 'a'+p.s.w.number, p.rank) }

// awayLink is what a resumed link between worlds has instead of places: the two worlds have the same
// ranks.
type awayLink struct {
	a  *Worlds
	of [2]*proc // the first one dials
}

func (w *awayLink) keep(l *kernel.Link) *kernel.Link {
	return w.a.keep(worldLink{l, w.of[:], true})
}

// resumeLimit is the longest time that a link between worlds may be without a lower link; 0: they are
// not resumed.
func (a *Worlds) resumeLimit() time.Duration {
	if a.cfg.Resume == nil {
		return 0
	}
	return a.cfg.Resume.Limit
}

// newResumed makes a resumable link between two procs of different worlds, without a lower link. It
// is in the sessions of both.
func (a *Worlds) newResumed(p, other *proc) *resumed {
	spec := a.cfg.Link
	spec.Name = fmt.Sprintf("link of %s to %s", p.title(), other.title())
	x := &resumed{w: p.s.w, spec: spec, away: &awayLink{a, [2]*proc{p, other}}, cfg: a.cfg.Resume, fails: a.cfg.DialFail, told: true}
	x.begin()
	other.s.w.sessions[x.session] = x
	for i, q := range x.away.of {
		pair := dynamic.WorldPair{Local: q.member(), Peer: x.away.of[1-i].member()}
		x.ends[i] = resumedEnd{
			alive: func() bool { return !q.s.dead && !q.h.gone && !q.s.left }, gone: q.task.Ended,
			take: func(e *kernel.End) {
				l := q.h.meets.Links.Resumable.Get(pair)
				if l == nil || resume.ResumableID(l.ID) != x.session { // its proc has closed the link meanwhile
					_ = e.Close()
					return
				}
				m := q.h.meets.Further(pair, l)
				m.Transport = "sim"
				a.tell(q, m, e)
			},
		}
	}
	return x
}

// repair does what a node has to do about a link to another world that a proc has lost.
func (a *Worlds) repair(s meetingStep) {
	p, other := s.Proc, a.procOf(s.Pair.Peer)
	done := func(made bool, v dynamic.Verdict, reason string) {
		if made && s.Repair == dynamic.Redial {
			a.Counts.Resumed++
		}
		a.with(p.h, func(n *meetingNode) { n.Repaired(s, made, v, reason) })
	}
	if s.Repair == dynamic.Redial {
		a.byName[s.Pair.Local.World].sessions[resume.ResumableID(s.Link.ID)].dial(a.cfg.Resume.Limit, []bool{true}, func(bool) dynamic.DialResult {
			r := unreachable(other)
			if r.Err == nil {
				if v := a.arriveAgain(other, s.Pair.Reversed(), dynamic.Hello{ResumableID: s.Link.ID, Resumes: true}); v != dynamic.Accepted {
					r = said(v)
				}
			}
			return r
		}, done)
		return
	}
	a.k.After(a.k.Between(10*time.Microsecond, 2*time.Millisecond), func() {
		r := unreachable(other)
		if r.Err != nil && r.Verdict == dynamic.Accepted { // nobody has heard it
			a.k.After(a.cfg.Resume.Limit, func() { done(false, dynamic.Accepted, "nobody is there") })
			return
		}
		if r.Err == nil {
			r.Verdict = a.arriveAgain(other, s.Pair.Reversed(), dynamic.Hello{ResumableID: s.Link.ID, Lost: true, Epoch: s.Epoch})
		}
		answered := func() { done(r.Verdict == dynamic.Accepted, r.Verdict, r.Verdict.String()) }
		if a.k.Chance(0.5) { // the way back is slow, and the other end dials meanwhile
			a.k.After(a.k.Between(0, 20*time.Second), answered)
			return
		}
		answered()
	})
}

// arriveAgain is what the node of a proc does with a further connection of a link, or with the
// message that it is lost at its other end.
func (a *Worlds) arriveAgain(p *proc, x dynamic.WorldPair, h dynamic.Hello) (v dynamic.Verdict) {
	a.with(p.h, func(n *meetingNode) {
		_, verdict, tell := n.ArriveAgain(p.s.w.time(), x, h, p.meeting())
		if v = verdict; tell != nil {
			a.tell(p, *tell, nil)
		}
	})
	return v
}
