package job

import (
	"errors"
	"fmt"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/internal/meetings"
	"github.com/openimpi/impi/internal/sim/kernel"
)

func (a *Worlds) dial(p *proc, x dynamic.WorldPair, question meetings.QuestionID) {
	var l *kernel.Link
	s := p.s.w.dialling(dynamic.WorldLinkPlan(1, &p.h.meets.Links.Pairs, x), func() bool { return !p.there() })
	s.dial = func(_ dynamic.DialStep, answered func(dynamic.DialResult)) {
		a.Counts.Dials++
		a.with(p.h, func(n *meetingNode) { n.Dialling(question) })
		answer := func(v dynamic.DialResult) {
			if v.Err == nil || v.Verdict != dynamic.Accepted {
				a.with(p.h, func(n *meetingNode) { n.Answered(question) })
			}
			answered(v)
		}
		a.k.After(a.k.Between(10*time.Microsecond, 2*time.Millisecond), func() {
			switch {
			case !p.there():
				s.left()
			case p.h.meets.Links.Pairs.State(x) != dynamic.Dialling: // the other end's link has arrived; a dial never takes longer than that
				answer(unheard(0))
			default:
				l = a.dialled(p, x, answer)
			}
		})
	}
	s.over = func(last dynamic.DialStep) {
		var why error
		switch {
		case last.Yielded:
			why = fmt.Errorf("%w: it was about to connect and did not", meetings.ErrLives)
		case last.Action == dynamic.GiveUp && last.PeerLives():
			why = meetings.ErrLives
		case last.Action == dynamic.GiveUp:
			why = errors.New("it could not be dialled")
		}
		a.with(p.h, func(n *meetingNode) {
			if n.DialEnded(question, why); why != nil {
				n.SetNoLink(p, x, why)
			}
		})
		if last.Action == dynamic.KeepLink {
			a.deliver(p, x, l.Ends[0])
		}
	}
	s.left = func() {
		if l != nil {
			_ = l.Ends[0].Close()
		}
		a.with(p.h, func(n *meetingNode) { n.DialEnded(question, nil) })
	}
	s.begin()
}

// dialled is what the peer's node does. It returns the link if it accepts it; the dialler learns of
// that after a while.
func (a *Worlds) dialled(p *proc, x dynamic.WorldPair, answer func(dynamic.DialResult)) *kernel.Link {
	other := a.procOf(x.Peer)
	if other != nil && (other.s.dead || other.h.gone) {
		answer(unheard(dynamic.NotListening))
		return nil
	}
	if other == nil || other.judged || other.fini || other.s.left { // its node has not noticed yet that it has died
		answer(said(dynamic.Leaving))
		return nil
	}
	if f, failing := fails(a.k, a.cfg.DialFail); failing {
		a.Counts.Failed++
		answer(f)
		return nil
	}
	var v dynamic.Verdict
	a.with(other.h, func(n *meetingNode) { v = n.Arrive(x.Reversed(), true, ending.InMPI, true) })
	if v != dynamic.Accepted {
		a.Counts.Ties++
		answer(said(v))
		return nil
	}
	a.Counts.Links++
	l := a.link(fmt.Sprintf("link of %s to %s", p.title(), other.title()), nil, p, other)
	a.deliver(other, x.Reversed(), l.Ends[1])
	a.k.After(a.k.Between(0, 300*time.Microsecond), func() { answer(dynamic.DialResult{}) }) // the peer's answer arrives
	return l
}

func (a *Worlds) deliver(p *proc, x dynamic.WorldPair, e *kernel.End) {
	m := p.h.meets.SetLink(x, struct{}{})
	m.Transport = "sim"
	a.tell(p, m, e)
}
