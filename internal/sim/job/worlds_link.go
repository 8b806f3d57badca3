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

func (a *Worlds) dial(p *proc, x dynamic.WorldPair) {
	var l *kernel.Link
	s := p.s.w.search(dynamic.WorldLinkPlan(1, &p.s.meets.Links.Pairs, x), func() bool { return !p.there() })
	s.dial = func(_ dynamic.DialStep, answer func(dynamic.Answer)) {
		a.k.After(a.k.Between(10*time.Microsecond, 2*time.Millisecond), func() {
			switch {
			case !p.there():
			case p.s.meets.Links.Pairs.Phase(x) != dynamic.Dialling: // the other end's link has arrived; a dial never takes longer than that
				answer(unheard(0))
			default:
				l = a.dialled(p, x, answer)
			}
		})
	}
	s.over = func(last dynamic.DialStep) {
		switch {
		case last.Action == dynamic.KeepLink:
			a.deliver(p, x, l.Ends[0])
		case last.Yielded:
			a.noLink(p, x, fmt.Errorf("%w: it was about to connect and did not", meetings.ErrLives))
		case last.Action == dynamic.GiveUp && last.Lives():
			a.noLink(p, x, meetings.ErrLives)
		case last.Action == dynamic.GiveUp:
			a.noLink(p, x, errors.New("it could not be dialled"))
		}
	}
	s.left = func() {
		if l != nil {
			_ = l.Ends[0].Close()
		}
	}
	s.begin()
}

// dialled is what the peer's node does. It returns the link if it accepts it; the dialler learns of
// that after a while.
func (a *Worlds) dialled(p *proc, x dynamic.WorldPair, answer func(dynamic.Answer)) *kernel.Link {
	other := a.procOf(x.Peer)
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
	a.with(other.s, func(n *meetingNode) { v = n.Arrive(x.Reversed(), true, ending.InMPI, true) })
	if v != dynamic.Accepted {
		a.Counts.Ties++
		answer(said(v))
		return nil
	}
	a.Counts.Links++
	l := a.link(fmt.Sprintf("link of %s to %s", p.title(), other.title()), nil, p, other)
	a.deliver(other, x.Reversed(), l.Ends[1])
	a.k.After(a.k.Between(0, 300*time.Microsecond), func() { answer(dynamic.Answer{}) }) // the peer's answer arrives
	return l
}

func (a *Worlds) deliver(p *proc, x dynamic.WorldPair, e *kernel.End) {
	m := p.s.meets.Give(x, struct{}{})
	m.Transport = "sim"
	a.tell(p, m, e)
}

// noLink tells a proc that there is no link. It may ask again.
func (a *Worlds) noLink(p *proc, x dynamic.WorldPair, why error) {
	a.with(p.s, func(n *meetingNode) { n.NoLink(p, x, why) })
}
