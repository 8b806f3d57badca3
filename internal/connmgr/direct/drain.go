package direct

import (
	"math"
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

// move is a link that was broken so that it leaves a plugin: how often it had been resumed by then,
// when that was, and whether the other end's node has ordered it.
type move struct {
	resumes int
	at      time.Time
	byPeer  bool
}

// moveTime is how long such a link is not resumed by the transport that it leaves.
const moveTime = 5 * time.Second

func (m move) leaves(s *dynamic.ResumableLink, limit time.Duration) bool {
	return s.Resumes == m.resumes && time.Since(m.at) < min(moveTime, limit/2)
}

// isMoving reports whether a link has yet to leave a plugin for which this node has broken it, by
// its own or the other end's order. The caller holds mu.
func isMoving(d *Links, x Pair) bool {
	for _, end := range []Pair{x, {x.Peer, x.Local}} {
		s := d.links.Resumable.Get(end)
		if t, told := d.told[s]; told && s != nil && s.Resumes == t.resumes {
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
	for x, phase := range d.links.Pairs.All() {
		r := d.past.of(x)
		p := d.Procs.OfRank(x.Local)
		if phase != dynamic.Linked || r.transport != transport || p.Phase() == ending.Finished || !PassesPlugin(r.plane) {
			continue
		}
		s := d.links.Resumable.Get(x)
		switch {
		case s == nil:
			u.Fixed++
		case len(d.Candidates(x)) == 0:
			u.Waiting++
		default:
			t, told := d.told[s]
			told = told && !t.byPeer
			if told && s.Resumes > t.resumes { // the other candidate does not work
				u.Waiting++
				continue
			}
			u.Moving++
			if !told {
				d.told[s] = move{resumes: s.Resumes, at: time.Now()}
				all = append(all, leaving{p, x, s})
			}
		}
	}
	d.mu.Unlock()
	for _, l := range all {
		d.Log.Debug("a direct link leaves a plugin", "rank", l.x.Local, "peer", l.x.Peer, "transport", transport)
		if l.s.Dialled {
			l.broken()
		} else {
			d.Tasks.Go(func() { l.ask(d) })
		}
	}
	return u
}

type leaving struct {
	p *procs.Proc
	x Pair
	s *dynamic.ResumableLink
}

// ordered stands for any connection number: whatever connection the link has is given up for
// another one, by somebody's order.
const ordered = math.MaxUint64

func (l leaving) broken() {
	m := further(l.x, l.s)
	m.Resumable.Lost, m.Resumable.Epoch = true, ordered
	_ = l.p.Send(m) // it may be gone
}

// ask has the other end's node, which dials, break a link: if it is broken here, that node takes it
// for lost. If the node does not hear of it, the link is broken here all the same.
func (l leaving) ask(d *Links) {
	d.mu.Lock()
	busy := l.s.Busy
	l.s.Busy = true
	d.mu.Unlock()
	if busy {
		return // the link is lost, and made again without the plugin
	}
	c, _, _, _ := d.dialAgain(l.x, l.s, dynamic.Hello{Src: l.x.Local, Dst: l.x.Peer, ResumableID: l.s.ID, Lost: true, Epoch: ordered})
	if c == nil {
		l.broken()
		return
	}
	_ = c.Close()
}

// ForgetMoves forgets which links were broken to leave a plugin.
func (d *Links) ForgetMoves() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.told)
}

// PassesPlugin reports whether the bytes of links with a data plane pass through a plugin.
func PassesPlugin(plane string) bool {
	p := transports.DataPlane(plane)
	return p != transports.PlaneFD && p != transports.PlanePeerSHM
}
