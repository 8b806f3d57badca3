package job

import (
	"fmt"
	"time"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/resume"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/sim/kernel"
	"github.com/openimpi/impi/internal/wireup"
)

// pair is a proc and another one, as the node of the first knows them.
type pair struct{ local, peer wire.WorldRank }

// back is the same pair as the other's node knows it.
func (x pair) back() pair { return pair{x.peer, x.local} }

// open is a proc's wish for a direct link.
func (w *World) open(p *proc, peer wire.WorldRank) {
	if x := (pair{p.rank, peer}); w.ties.Want(x) {
		w.dial(p, x, 0)
	}
}

// dial reaches the peer's node after a while, as the plugins of two sites do. The other end's
// link may come meanwhile.
func (w *World) dial(p *proc, x pair, yields int) {
	w.k.After(w.k.Between(10*time.Microsecond, 2*time.Millisecond), func() { w.dialled(p, x, yields) })
}

func (w *World) dialled(p *proc, x pair, yields int) {
	other := w.procs[x.peer]
	lost := p.s.pluginDown(w) || w.k.Chance(w.cfg.DialFail)
	switch {
	case p.s.left:
		return
	case other == nil: // its site is not so far
		w.k.After(retry, func() { w.dialled(p, x, yields) })
		return
	case other.fini || other.s.left || lost:
		w.giveUp(p, x)
		return
	}
	switch w.ties.Arrive(x.back(), x.local < x.peer) {
	case dynamic.Accepted:
		w.connect(p, other, x)
	case dynamic.NotAllowed:
		w.giveUp(p, x)
	default:
		w.yield(p, x, yields)
	}
}

// yield waits for the link that won the tie.
func (w *World) yield(p *proc, x pair, yields int) {
	if !w.ties.Lost(x) {
		return
	}
	w.k.After(yieldTime, func() {
		switch {
		case p.s.left || !w.ties.Overdue(x):
		case yields+1 < maxYields:
			w.dial(p, x, yields+1)
		default:
			w.untied = append(w.untied, x)
			w.giveUp(p, x)
		}
	})
}

// giveUp has a pair do without a direct link.
func (w *World) giveUp(p *proc, x pair) {
	if w.ties.GiveUp(x) {
		p.give(wireup.Message{Kind: wireup.KindLink, Peer: x.peer, Reason: "it could not be dialled"}, nil)
	}
}

// connect makes a link that the other end's node has accepted. Its proc has it first.
func (w *World) connect(p, other *proc, x pair) {
	spec := w.cfg.Links.Direct
	spec.Name = fmt.Sprintf("direct %d to %d", x.local, x.peer)
	var l *kernel.Link
	var terms [2]*wireup.Resumable
	enrol := func(pair, bool) {}
	if w.cfg.Resume != nil {
		r := w.newResumed(spec, p.endpoint(), other.endpoint(), [2]resumedEnd{{alive: p.dials, gone: p.task.Ended}, {alive: other.dials, gone: other.task.Ended}})
		l = r.below(nil)
		terms = [2]*wireup.Resumable{r.terms(0), r.terms(1)}
		r.ends[0].take = func(e *kernel.End) { w.deliver(p, x.peer, r.further(), e) }
		r.ends[1].take = func(e *kernel.End) { w.deliver(other, x.local, r.further(), e) }
		enrol = func(x pair, dialled bool) { w.links.Enrol(x, dynamic.Session(r.session), dialled) }
	} else {
		l = w.link(spec, p.endpoint(), other.endpoint())
	}
	enrol(x.back(), false)
	w.deliver(other, x.local, terms[1], l.Ends[1])
	w.k.After(w.k.Between(0, 300*time.Microsecond), func() { // the verdict comes back
		if w.ties.Made(x) {
			enrol(x, true)
			w.deliver(p, x.peer, terms[0], l.Ends[0])
		} else {
			_ = l.Ends[0].Close()
		}
	})
}

// further describes a further link below.
func (x *resumed) further() *wireup.Resumable {
	return &wireup.Resumable{Session: x.session[:], Again: true}
}

// reopen is a proc's wish for a further link below.
func (w *World) reopen(p *proc, m wireup.Message) {
	x, other := pair{p.rank, m.Peer}, w.procs[m.Peer]
	state := w.links.Get(x)
	judge := func(h dynamic.Hello) dynamic.Verdict { return w.links.Judge(x.back(), h, other.fini) }
	done := func(v dynamic.Verdict, reason string) {
		if state.Busy = false; v != dynamic.Accepted {
			p.give(wireup.Message{Kind: wireup.KindLink, Peer: x.peer, Reason: reason, Resumable: &wireup.Resumable{
				Session: m.Resumable.Session, Again: true, Over: v == dynamic.Leaving,
			}}, nil)
		}
	}
	switch w.links.Want(x, m.Resumable.Session, m.Resumable.Over) {
	case dynamic.Redial:
		w.sessions[resume.Session(state.ID)].dial(func() dynamic.Verdict { return judge(dynamic.Hello{Session: state.ID, Again: true}) }, done)
	case dynamic.HaveTold:
		w.k.After(w.k.Between(10*time.Microsecond, 2*time.Millisecond), func() {
			v := judge(dynamic.Hello{Session: state.ID, Lost: true})
			if v == dynamic.Accepted {
				other.give(wireup.Message{Kind: wireup.KindLink, Peer: x.local, Resumable: &wireup.Resumable{
					Session: m.Resumable.Session, Again: true, Lost: true, Epoch: m.Resumable.Epoch,
				}}, nil)
			}
			done(v, "the other end has no such link")
		})
	case dynamic.Nothing, dynamic.NoSuchLink:
	}
}

func (p *proc) endpoint() Endpoint { return Endpoint{AtProc, int(p.rank)} }

// dials tells whether the proc's site can make a link for it, or take one.
func (p *proc) dials() bool { return p.s.works() && !p.crashed && !p.s.pluginDown(p.s.w) }

// deliver brings a link to its proc, some time after it was made.
func (w *World) deliver(p *proc, peer wire.WorldRank, terms *wireup.Resumable, e *kernel.End) {
	w.k.After(w.k.Between(0, 100*time.Microsecond), func() {
		p.give(wireup.Message{Kind: wireup.KindLink, Peer: peer, Transport: "sim", Resumable: terms}, e)
	})
}

// pluginDown tells whether the site's transport plugin is being started again.
func (s *site) pluginDown(w *World) bool { return w.k.Now() < w.pluginsBack[s.rank] }

// CrashPlugin kills the transport plugin of a site: links stay, and for a while
// none can be made.
func (w *World) crashPlugin(c wire.ClientRank) {
	w.pluginsBack[c] = w.k.Now() + w.k.Between(time.Millisecond, 20*time.Millisecond)
}
