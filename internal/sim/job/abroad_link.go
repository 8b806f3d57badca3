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

// meetPair is a proc and one of another world, as the node of the first knows them.
type meetPair struct{ local, peer dynamic.Member }

// back is the same pair as the other's node knows it.
func (x meetPair) back() meetPair { return meetPair{x.peer, x.local} }

// open is a proc's wish for a link to a proc of another world.
func (a *Abroad) open(p *proc, peer wire.WorldRank, m *wireup.Meeting) {
	x := meetPair{local: p.member(), peer: dynamic.Member{Rank: peer}}
	copy(x.peer.World[:], m.World)
	if a.ties.Want(x) {
		a.dial(p, x, 0)
	}
}

// dial reaches the peer's node after a while.
func (a *Abroad) dial(p *proc, x meetPair, yields int) {
	a.k.After(a.k.Between(10*time.Microsecond, 2*time.Millisecond), func() {
		if p.there() && a.ties.Phase(x) == dynamic.Dialling {
			a.dialled(p, x, yields)
		}
	})
}

func (a *Abroad) dialled(p *proc, x meetPair, yields int) {
	other := a.procOf(x.peer)
	switch {
	case !other.there():
		a.noLink(p, x, "nobody is there")
		return
	case a.k.Chance(a.cfg.DialFail):
		a.Counts.Failed++
		a.noLink(p, x, "it could not be dialled")
		return
	}
	if a.ties.Arrive(x.back(), x.local.Compare(x.peer) < 0) != dynamic.Accepted {
		a.Counts.Ties++
		a.yield(p, x, yields)
		return
	}
	a.Counts.Links++
	l := a.link(fmt.Sprintf("link of %s to %s", p.title(), other.title()), nil)
	a.deliver(other, x.back(), l.Ends[1])
	a.k.After(a.k.Between(0, 300*time.Microsecond), func() { // the verdict comes back
		if p.there() && a.ties.Made(x) {
			a.deliver(p, x, l.Ends[0])
		} else {
			_ = l.Ends[0].Close()
		}
	})
}

// yield waits for the link that won the tie.
func (a *Abroad) yield(p *proc, x meetPair, yields int) {
	if !a.ties.Lost(x) {
		return
	}
	a.k.After(yieldTime, func() {
		switch {
		case !p.there() || !a.ties.Overdue(x):
		case yields+1 < maxYields:
			a.dial(p, x, yields+1)
		default:
			a.noLink(p, x, "the peer was about to connect and did not")
		}
	})
}

func aboutPair(x meetPair) wireup.Message {
	return wireup.Message{Kind: wireup.KindLink, Peer: x.peer.Rank, Meeting: &wireup.Meeting{World: x.peer.World[:]}}
}

func (a *Abroad) deliver(p *proc, x meetPair, e *kernel.End) {
	m := aboutPair(x)
	m.Transport = "sim"
	a.tell(p, m, e)
}

// noLink tells a proc that there is no link. It may ask again.
func (a *Abroad) noLink(p *proc, x meetPair, reason string) {
	a.ties.Fail(x)
	m := aboutPair(x)
	m.Reason, m.Meeting.Class = reason, int(mpierr.Port)
	a.tell(p, m, nil)
}

// forget lets go of a link that the proc has closed: another one can be made.
func (a *Abroad) forget(p *proc, peer wire.WorldRank, m *wireup.Meeting) {
	x := meetPair{local: p.member(), peer: dynamic.Member{Rank: peer}}
	copy(x.peer.World[:], m.World)
	a.ties.Drop(x)
}
