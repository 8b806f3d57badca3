package job

import (
	"fmt"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/internal/meetings"
	"github.com/openimpi/impi/internal/sim/kernel"
	"github.com/openimpi/impi/internal/wireup"
)

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
