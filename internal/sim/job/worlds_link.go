package job

import (
	"errors"
	"fmt"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/internal/meetings"
	"github.com/openimpi/impi/internal/sim/kernel"
	"github.com/openimpi/impi/internal/wireup"
)

// worldCandidates is the number of transports by which procs of different worlds are dialled.
const worldCandidates = 2

func (a *Worlds) dial(p *proc, x dynamic.WorldPair, question meetings.QuestionID) {
	var l *kernel.Link
	s := p.s.w.dialling(dynamic.WorldLinkPlan(worldCandidates, &p.h.meets.Links.Pairs, x), func() bool { return !p.there() })
	s.isOnlyPlan(p.s.w, x)
	s.dial = func(_ dynamic.DialStep, answered func(dynamic.DialResult)) {
		a.Counts.Dials++
		a.with(p.h, func(n *meetingNode) { n.Dialling(question) })
		answer := func(v dynamic.DialResult) {
			a.with(p.h, func(n *meetingNode) { n.Dialled(question, v) })
			answered(v)
		}
		a.k.After(a.k.Between(10*time.Microsecond, 2*time.Millisecond), func() {
			switch {
			case !p.there():
				s.ended()
				s.left()
			case p.h.meets.Links.Pairs.State(x) != dynamic.Dialling: // the other end's link has arrived; a dial never takes longer than that
				answer(unheard(0))
			default:
				l = a.dialled(p, x, s, answer)
			}
		})
	}
	s.over = func(last dynamic.DialStep) {
		a.with(p.h, func(n *meetingNode) { n.SearchEnded(p, x, question, last, errors.New("it could not be dialled")) })
		if last.Action == dynamic.KeepLink {
			a.deliver(p, x, l.Ends[0])
		}
	}
	s.left = func() {
		if l != nil {
			_ = l.Ends[0].Close()
		}
		a.with(p.h, func(n *meetingNode) {
			n.SearchEnded(p, x, question, dynamic.DialStep{Action: dynamic.Abandon}, nil)
		})
	}
	s.begin()
}

// dialled is what the peer's node does. It returns the link if it accepts it; the dialler learns of
// that after a while.
func (a *Worlds) dialled(p *proc, x dynamic.WorldPair, s *dialling, answer func(dynamic.DialResult)) *kernel.Link {
	other := a.procOf(x.Peer)
	if other != nil && (other.s.dead || other.h.gone) {
		answer(unheard(dynamic.NotListening))
		return nil
	}
	if other == nil || other.s.left { // it has not begun yet, or there is no node any more
		answer(said(dynamic.Leaving))
		return nil
	}
	broken := a.breaks(s)
	switch {
	case broken == nowhere:
	case a.k.Chance(0.5):
		answer(unheard([]dynamic.DialFailure{0, dynamic.NotListening, dynamic.NoRoom}[a.k.Rand().IntN(3)]))
		return nil
	case broken == beforeProof:
		answer(dynamic.DialResult{Err: errBroken, Failure: dynamic.GreetingFailed(false, true, false)})
		return nil
	}
	to := meetings.Receiver{Known: true, State: other.standing().State, Ended: other.judged, Allowed: true}
	var v dynamic.Verdict
	a.with(other.h, func(n *meetingNode) { v = n.Arrive(x.Reversed(), to) })
	if v != dynamic.Accepted {
		a.Counts.Ties++
		answer(said(v))
		return nil
	}
	if broken == beforeAnswer {
		a.k.After(a.k.Between(0, 300*time.Microsecond), func() {
			if other.there() {
				a.Counts.Broken++
				a.with(other.h, func(n *meetingNode) { n.AcceptedLinkLost(other, x.Reversed()) })
			}
			answer(dynamic.DialResult{Err: errBroken, Failure: dynamic.GreetingFailed(true, true, false)})
		})
		return nil
	}
	a.Counts.Links++
	l := a.link(fmt.Sprintf("link of %s to %s", p.title(), other.title()), nil, p, other)
	a.deliver(other, x.Reversed(), l.Ends[1])
	a.k.After(a.k.Between(0, 300*time.Microsecond), func() { answer(dynamic.DialResult{}) }) // the peer's answer arrives
	return l
}

// breaks decides where the greeting of a link to another world breaks, once for each dial plan, as
// the procs fail if there is no link.
func (a *Worlds) breaks(s *dialling) breaking {
	if s.unmet > 0 || !a.k.Chance(a.cfg.DialFail) {
		return nowhere
	}
	s.unmet++
	a.Counts.Failed++
	return beforeProof + breaking(a.k.Rand().IntN(int(beforeAnswer)))
}

func (a *Worlds) deliver(p *proc, x dynamic.WorldPair, e *kernel.End) {
	m := p.h.meets.SetLink(x, struct{}{})
	m.Transport = "sim"
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
			answer(a.called(p, x.Request, port, a.breaks(s)))
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
