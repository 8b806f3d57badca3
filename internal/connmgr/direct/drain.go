package direct

import (
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/internal/procs"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// LinksInUse are the links whose bytes pass through a plugin.
type LinksInUse struct {
	Moving  int // resumable, with another candidate
	Waiting int // resumable, without another candidate
	Fixed   int // not resumable
}

// isMoving reports whether a link has yet to leave a plugin for which this node has broken it, by
// its own or the other end's order. The caller holds mu.
func isMoving(d *Links, x Pair) bool {
	for _, end := range []Pair{x, {x.Peer, x.Local}} {
		if s := d.links.Resumable.Get(end); s != nil && d.links.Moves.Moves(s) {
			return true
		}
	}
	return false
}

// MoveOffPlugin counts the links whose bytes pass through the plugin of a transport that new links
// do not use. Those that can continue by another transport are broken, once, so that they are
// resumed by that. If that fails, they are resumed as before.
func (d *Links) MoveOffPlugin(transport string) (u LinksInUse) {
	var all []leaving
	d.mu.Lock()
	for x, state := range d.links.Pairs.All() {
		r := d.past.of(x)
		p := d.Procs.OfRank(x.Local)
		if state != dynamic.Linked || r.transport != transport || p.State() == ending.Finished || !PassesPlugin(r.plane) {
			continue
		}
		s := d.links.Resumable.Get(x)
		leave, begin := d.links.Moves.Order(time.Now(), s, len(d.Candidates(x)) > 0)
		switch leave {
		case dynamic.Fixed:
			u.Fixed++
		case dynamic.Waiting:
			u.Waiting++
		case dynamic.Moving:
			u.Moving++
		}
		if begin {
			all = append(all, leaving{p, x, s, d.links.Moves.Break(s)})
		}
	}
	d.mu.Unlock()
	for _, l := range all {
		d.Log.Debug("a direct link leaves a plugin", "rank", l.x.Local, "peer", l.x.Peer, "transport", transport)
		switch l.by {
		case dynamic.BreakHere:
			l.broken()
		case dynamic.AskPeer:
			d.Tasks.Go(func() { l.ask(d) })
		case dynamic.Nobody:
		}
	}
	return u
}

type leaving struct {
	p *procs.Proc
	x Pair
	s *dynamic.ResumableLink

	by dynamic.Breaker
}

func (l leaving) broken() {
	m := further(l.x, l.s)
	m.Resumable.Lost, m.Resumable.Epoch = true, dynamic.OrderedEpoch
	_ = l.p.Send(m) // it may be gone
}

// ask has the other end's node, which dials, break a link.
func (l leaving) ask(d *Links) {
	hello := dynamic.Hello{Src: l.x.Local, Dst: l.x.Peer, ResumableID: l.s.ID, Lost: true, Epoch: dynamic.OrderedEpoch}
	c, _, _ := d.dialAgain(l.p, l.x, l.s, hello, func(made bool, _ dynamic.Verdict) { l.by = d.links.Moves.Asked(l.s, made) })
	if c != nil {
		_ = c.Close()
	}
	if l.by == dynamic.BreakHere {
		l.broken()
	}
}

// ForgetMoves forgets which links were broken to leave a plugin.
func (d *Links) ForgetMoves() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.links.Moves.Forget()
}

// PassesPlugin reports whether the bytes of links with a data plane pass through a plugin.
func PassesPlugin(plane string) bool {
	p := transports.DataPlane(plane)
	return p != transports.PlaneFD && p != transports.PlanePeerSHM
}
