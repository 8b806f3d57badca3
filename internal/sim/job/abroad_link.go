package job

import (
	"fmt"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/sim/kernel"
	"github.com/openimpi/impi/internal/wireup"
)

// pairOf is a proc and one of another world.
func pairOf(p *proc, peer wire.WorldRank, m *wireup.Meeting) dynamic.WorldPair {
	x := dynamic.WorldPair{Local: p.member(), Peer: dynamic.Member{Rank: peer}}
	copy(x.Peer.World[:], m.World)
	return x
}

// open is a proc's wish for a link to a proc of another world.
func (a *Abroad) open(p *proc, peer wire.WorldRank, m *wireup.Meeting) {
	x := pairOf(p, peer, m)
	if !a.meets.Ask(x, m) {
		return
	}
	var l *kernel.Link
	s := p.s.w.search(dynamic.WorldSearch(1, &a.meets.Ties, x), func() bool { return !p.there() })
	s.dial = func(_ dynamic.SearchStep, answer func(dynamic.Answer)) {
		a.k.After(a.k.Between(10*time.Microsecond, 2*time.Millisecond), func() {
			switch {
			case !p.there():
			case a.meets.Ties.Phase(x) != dynamic.Dialling: // the other end's link has come; no dial is as late as that one's end
				answer(unheard(0))
			default:
				l = a.dialled(p, x, answer)
			}
		})
	}
	s.over = func(last dynamic.SearchStep) {
		switch {
		case last.Action == dynamic.KeepLink:
			a.deliver(p, x, l.Ends[0])
		case last.Yielded:
			a.noLink(p, x, "the peer was about to connect and did not")
		case last.Action == dynamic.GiveUp:
			a.noLink(p, x, "it could not be dialled")
		}
	}
	s.left = func() {
		if l != nil {
			_ = l.Ends[0].Close()
		}
	}
	s.begin()
}

// dialled is what the peer's node does. It gives the link if it has accepted it, of which the
// dialler hears after a while.
func (a *Abroad) dialled(p *proc, x dynamic.WorldPair, answer func(dynamic.Answer)) *kernel.Link {
	other := a.procOf(x.Peer)
	if !other.there() {
		answer(said(dynamic.Leaving))
		return nil
	}
	if f, failing := fails(a.k, a.cfg.DialFail); failing {
		a.Counts.Failed++
		answer(f)
		return nil
	}
	if v := a.meets.Arrive(x.Back()); v != dynamic.Accepted {
		a.Counts.Ties++
		answer(said(v))
		return nil
	}
	a.Counts.Links++
	l := a.link(fmt.Sprintf("link of %s to %s", p.title(), other.title()), nil)
	a.deliver(other, x.Back(), l.Ends[1])
	a.k.After(a.k.Between(0, 300*time.Microsecond), func() { answer(dynamic.Answer{}) }) // the verdict comes back
	return l
}

func aboutPair(x dynamic.WorldPair) wireup.Message {
	return wireup.Message{Kind: wireup.KindLink, Peer: x.Peer.Rank, Meeting: &wireup.Meeting{World: x.Peer.World[:]}}
}

func (a *Abroad) deliver(p *proc, x dynamic.WorldPair, e *kernel.End) {
	m := aboutPair(x)
	m.Transport = "sim"
	a.meets.Give(x, struct{}{})
	a.tell(p, m, e)
}

// noLink tells a proc that there is no link. It may ask again.
func (a *Abroad) noLink(p *proc, x dynamic.WorldPair, reason string) {
	a.meets.Deny(x)
	m := aboutPair(x)
	m.Reason, m.Meeting.Class = reason, int(mpierr.Port)
	a.tell(p, m, nil)
}

// forget lets go of a link that the proc has closed: another one can be made.
func (a *Abroad) forget(p *proc, peer wire.WorldRank, m *wireup.Meeting) {
	a.meets.Drop(pairOf(p, peer, m))
}
