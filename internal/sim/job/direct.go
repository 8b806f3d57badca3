package job

import (
	"fmt"
	"time"

	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/wireup"
)

// pair is two procs, the lower rank first.
type pair [2]wire.WorldRank

// open makes a direct link for a proc that wants one, as the plugins of two
// sites do. Both ways or none: if it cannot be made, the other proc is refused
// too when it asks.
func (w *World) open(p *proc, peer wire.WorldRank) {
	x := pair{min(p.rank, peer), max(p.rank, peer)}
	st := w.pairs[x]
	switch {
	case st == nil:
		st = &pairState{}
		w.pairs[x] = st
		w.k.After(w.k.Between(10*time.Microsecond, 2*time.Millisecond), func() { w.dialled(p, peer, st) })
	case st.refused:
		w.refuse(p, peer)
	case !st.linked:
		st.waiting = append(st.waiting, p)
	}
}

// pairState is how far a pair has got.
type pairState struct {
	linked, refused bool
	waiting         []*proc // asked too
}

func (w *World) dialled(p *proc, peer wire.WorldRank, st *pairState) {
	other := w.procs[peer]
	lost := p.s.pluginDown(w) || w.k.Chance(w.cfg.DialFail)
	switch {
	case other == nil && !p.s.left: // its site is not so far
		w.k.After(retry, func() { w.dialled(p, peer, st) })
		return
	case other == nil || other.fini || other.s.left || lost:
		st.refused = true
		w.refuse(p, peer)
		for _, q := range st.waiting {
			if q != p {
				w.refuse(q, p.rank)
			}
		}
		return
	}
	st.linked = true
	spec := w.cfg.Links.Direct
	spec.Name = fmt.Sprintf("direct %d to %d", p.rank, peer)
	if w.cfg.Resume != nil {
		l := w.newLasting(spec, p.endpoint(), other.endpoint(), [2]func() bool{p.dials, other.dials})
		w.deliver(p, peer, l.ends[0])
		w.deliver(other, p.rank, l.ends[1])
		l.ends[0].update() // it dials
		l.ends[1].update()
		return
	}
	l := w.link(spec, p.endpoint(), other.endpoint())
	w.deliver(p, peer, l.Ends[0])
	w.deliver(other, p.rank, l.Ends[1])
}

func (p *proc) endpoint() Endpoint { return Endpoint{AtProc, int(p.rank)} }

// dials tells whether the proc's site can make a link for it, or take one.
func (p *proc) dials() bool { return p.s.works() && !p.crashed && !p.s.pluginDown(p.s.w) }

// deliver brings a link to its proc, some time after it was made.
func (w *World) deliver(p *proc, peer wire.WorldRank, e end) {
	w.k.After(w.k.Between(0, 100*time.Microsecond), func() {
		p.give(wireup.Message{Kind: wireup.KindLink, Peer: peer, Transport: "sim"}, e)
	})
}

func (w *World) refuse(p *proc, peer wire.WorldRank) {
	p.give(wireup.Message{Kind: wireup.KindLink, Peer: peer, Reason: "it could not be dialled"}, nil)
}

// pluginDown tells whether the site's transport plugin is being started again.
func (s *site) pluginDown(w *World) bool { return w.k.Now() < w.pluginsBack[s.rank] }

// CrashPlugin kills the transport plugin of a site: links stay, and for a while
// none can be made.
func (w *World) crashPlugin(c wire.ClientRank) {
	w.pluginsBack[c] = w.k.Now() + w.k.Between(time.Millisecond, 20*time.Millisecond)
}
