package direct

import (
	"math"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/internal/node/procs"
	"github.com/openimpi/impi/transports"
)

// Using are the links whose bytes pass through a plugin.
type Using struct {
	Moving  int // resumable, with another way to the peer
	Waiting int // resumable, with none
	Fixed   int // not resumable
}

// move is a link that was broken to leave a plugin: how often it had been resumed then, and when that was.
type move struct {
	resumes int
	at      time.Time
}

// moveTime is how long such a link is not resumed by the transport that it leaves.
const moveTime = 5 * time.Second

// leaves reports whether a link is about to leave the transport that it has.
func (m move) leaves(s *dynamic.SessionState, limit time.Duration) bool {
	return s.Resumes == m.resumes && time.Since(m.at) < min(moveTime, limit/2)
}

// isMoving reports whether a link has yet to leave a plugin because either end's node, if it is this one,
// broke it for that. The caller holds mu.
func isMoving(d *Links, x Pair) bool {
	for _, end := range []Pair{x, {x.Peer, x.Local}} {
		s := d.links.Sessions.Get(end)
		if t, told := d.told[s]; told && s != nil && s.Resumes == t.resumes {
			return true
		}
	}
	return false
}

// Leave counts the links whose bytes pass through the plugin of a transport, which new links do without.
// Those that can go on by another transport are broken, once, so that they are resumed by that. If that
// does not work, they are resumed as before.
func (d *Links) Leave(transport string) (u Using) {
	type leaving struct {
		p *procs.Proc
		x Pair
		s *dynamic.SessionState
	}
	var all []leaving
	d.mu.Lock()
	for x, phase := range d.links.Pairs.All() {
		r := d.past.of(x)
		p := d.Procs.Of(x.Local)
		if phase != dynamic.Linked || r.transport != transport || p.Phase() == ending.Finished || !PassesPlugin(r.plane) {
			continue
		}
		s := d.links.Sessions.Get(x)
		switch {
		case s == nil:
			u.Fixed++
		case len(d.Ways(x)) == 0:
			u.Waiting++
		default:
			t, told := d.told[s]
			if told && s.Resumes > t.resumes { // the other way does not work
				u.Waiting++
				continue
			}
			u.Moving++
			if !told {
				d.told[s] = move{s.Resumes, time.Now()}
				all = append(all, leaving{p, x, s})
			}
		}
	}
	d.mu.Unlock()
	for _, l := range all {
		m := further(l.x, l.s)
		m.Resumable.Lost, m.Resumable.Epoch = true, math.MaxUint64 // whichever connection it has
		_ = l.p.Tell(m)                                            // it may be gone
		d.Log.Debug("a direct link leaves a plugin", "rank", l.x.Local, "peer", l.x.Peer, "transport", transport)
	}
	return u
}

// Stay forgets which links were broken to leave a plugin.
func (d *Links) Stay() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.told)
}

// PassesPlugin reports whether the bytes of links with a data plane pass through a plugin.
func PassesPlugin(plane string) bool {
	p := transports.DataPlane(plane)
	return p != transports.PlaneFD && p != transports.PlanePeerSHM
}
