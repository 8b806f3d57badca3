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

// pair is a proc and its peer, from the point of view of the first one's node.
type pair struct{ local, peer wire.WorldRank }

func (x pair) back() pair { return pair{x.peer, x.local} }

// linking is a node's dial plan for the first link between two procs.
type linking struct {
	w         *World
	p         *proc
	x         pair
	endpoints []dynamic.Endpoint
	spec      kernel.LinkSpec
	l         *kernel.Link
	r         *resumed // nil: the link is not resumable
}

func (w *World) open(p *proc, peer wire.WorldRank) {
	x := pair{p.rank, peer}
	if !w.direct.Pairs.Request(x) {
		return
	}
	d := &linking{w: w, p: p, x: x, endpoints: p.s.with(w.job.Procs.At(peer).Client).endpoints(), spec: w.cfg.Links.Direct}
	d.spec.Name = fmt.Sprintf("direct %d to %d", x.local, x.peer)
	limit := time.Duration(0)
	if w.cfg.Resume != nil {
		limit = w.cfg.Resume.Limit
	}
	s := w.dialling(dynamic.DirectLinkPlan(len(d.endpoints), &w.direct.Pairs, x, limit), func() bool { return p.s.left })
	s.dial = func(step dynamic.DialStep, answer func(dynamic.DialResult)) {
		w.k.After(w.k.Between(10*time.Microsecond, 2*time.Millisecond), func() { d.dialled(step, answer) })
	}
	s.over = d.over
	s.begin()
}

func (w *World) dialling(s *dynamic.DialPlan, gone func() bool) *dialling {
	return &dialling{DialPlan: s, k: w.k, gone: gone}
}

func (d *linking) dialled(step dynamic.DialStep, answer func(dynamic.DialResult)) {
	w, other := d.w, d.w.procs[d.x.peer]
	if other == nil { // its site has not started it yet
		w.k.After(retry, func() { d.dialled(step, answer) })
		return
	}
	if a, failing := fails(w.k, w.cfg.DialFail); failing {
		answer(a)
		return
	}
	switch {
	case d.p.s.left:
	case d.p.s.pluginDown(w):
		answer(unheard(dynamic.NotListening))
	case other.fini || other.s.left:
		answer(said(dynamic.Leaving))
	case !other.s.with(d.p.s.rank).allows(d.endpoints[step.Candidate].Transport):
		answer(said(dynamic.NotAllowed))
	case step.Resumes:
		v := w.direct.Resumable.CheckResume(d.x.back(), dynamic.Hello{ResumableID: dynamic.ResumableID(d.r.session), Resumes: true}, other.fini)
		if v != dynamic.Accepted {
			answer(said(v))
			return
		}
		d.l = d.r.below(nil)
		d.r.ends[1].take(d.l.Ends[1])
		answer(dynamic.DialResult{})
	default:
		d.connect(other, step, answer)
	}
}

// connect sends the greeting for a new link to the peer's node. The peer's proc gets the link
// first.
func (d *linking) connect(other *proc, step dynamic.DialStep, answer func(dynamic.DialResult)) {
	w, p, x := d.w, d.p, d.x
	if w.cfg.Resume != nil && step.Fresh {
		w.direct.Abandon(x)
		d.r = w.newResumed(d.spec, p.endpoint(), other.endpoint(), [2]resumedEnd{{alive: p.dials, gone: p.task.Ended}, {alive: other.dials, gone: other.task.Ended}})
		d.r.tell()
	}
	breaks := 0 // where the greeting breaks: 1 before it is accepted, 2 after
	if d.r != nil && w.k.Chance(w.cfg.Resume.Cuts) {
		breaks = 1 + w.k.Rand().IntN(2)
	}
	if breaks == 1 {
		d.breaks(answer)
		return
	}
	if v := w.direct.Arrive(x.back(), d.session(), x.local < x.peer); v != dynamic.Accepted {
		answer(said(v))
		return
	}
	var terms *wireup.Resumable
	if r := d.r; r != nil {
		d.l, terms = r.below(nil), r.terms(1)
		r.ends[0].take = func(e *kernel.End) { w.deliver(p, x.peer, r.further(), e) }
		r.ends[1].take = func(e *kernel.End) { w.deliver(other, x.local, r.further(), e) }
	} else {
		d.spec.Boxes = w.cfg.Boxes && p.h == other.h
		d.l = w.link(d.spec, p.endpoint(), other.endpoint())
		if d.spec.Boxes {
			w.boxed = append(w.boxed, d.l)
		}
	}
	w.deliver(other, x.local, terms, d.l.Ends[1])
	w.k.After(w.k.Between(0, 300*time.Microsecond), func() { // the peer's verdict arrives
		if breaks == 2 {
			d.l.Cut(errBroken)
			d.breaks(answer)
			return
		}
		if p.s.left {
			_ = d.l.Ends[0].Close()
		}
		answer(dynamic.DialResult{})
	})
}

func (d *linking) breaks(answer func(dynamic.DialResult)) {
	d.w.direct.Uncertain(d.x, d.session())
	answer(dynamic.DialResult{Err: errBroken, Failure: dynamic.Uncertain})
}

func (d *linking) over(last dynamic.DialStep) {
	w, p, x := d.w, d.p, d.x
	switch last.Action {
	case dynamic.KeepLink:
		w.direct.Made(x, d.session())
		var terms *wireup.Resumable
		if d.r != nil {
			terms = d.r.terms(0)
		}
		w.deliver(p, x.peer, terms, d.l.Ends[0])
		return
	case dynamic.CloseLink:
		_ = d.l.Ends[0].Close()
	case dynamic.GiveUp:
		if last.Yielded {
			w.linkless = append(w.linkless, x)
		}
		p.give(wireup.Message{Kind: wireup.KindLink, Peer: x.peer, Reason: "it could not be dialled"}, nil)
	case dynamic.DialCandidate, dynamic.Pause, dynamic.PauseAfterRound, dynamic.Abandon: // the last step is none of these, or needs no action
	}
	w.direct.Abandon(x)
}

// session returns the session of the link that is being made; zero: it is not resumable.
func (d *linking) session() (id dynamic.ResumableID) {
	if d.r != nil {
		id = dynamic.ResumableID(d.r.session)
	}
	return id
}

func (x *resumed) further() *wireup.Resumable {
	return &wireup.Resumable{Session: x.session[:], Again: true}
}

func (w *World) reopen(p *proc, m wireup.Message) {
	x, other := pair{p.rank, m.Peer}, w.procs[m.Peer]
	state := w.direct.Resumable.Get(x)
	judge := func(h dynamic.Hello) dynamic.Verdict { return w.direct.Resumable.CheckResume(x.back(), h, other.fini) }
	done := func(v dynamic.Verdict, reason string) {
		if state.Busy = false; v != dynamic.Accepted {
			p.give(wireup.Message{Kind: wireup.KindLink, Peer: x.peer, Reason: reason, Resumable: &wireup.Resumable{
				Session: m.Resumable.Session, Again: true, Over: v == dynamic.Leaving,
			}}, nil)
		}
	}
	switch w.direct.Resumable.Repair(x, m.Resumable.Session, m.Resumable.Over) {
	case dynamic.Redial:
		w.sessions[resume.SessionID(state.ID)].dial(w.cfg.Resume.Limit, func() (a dynamic.DialResult) {
			if v := judge(dynamic.Hello{ResumableID: state.ID, Resumes: true}); v != dynamic.Accepted {
				a = said(v)
			}
			return a
		}, done)
	case dynamic.TellPeer:
		w.k.After(w.k.Between(10*time.Microsecond, 2*time.Millisecond), func() {
			v := judge(dynamic.Hello{ResumableID: state.ID, Lost: true})
			if v == dynamic.Accepted && !w.direct.Resumable.Get(x.back()).Making {
				other.give(wireup.Message{Kind: wireup.KindLink, Peer: x.local, Resumable: &wireup.Resumable{
					Session: m.Resumable.Session, Again: true, Lost: true, Epoch: m.Resumable.Epoch,
				}}, nil)
			}
			done(v, "the other end has no such link")
		})
	case dynamic.NoRepair, dynamic.NoSuchLink:
	}
}

func (p *proc) endpoint() Endpoint { return Endpoint{AtProc, int(p.rank)} }

func (p *proc) dials() bool { return p.s.works() && !p.crashed && !p.s.pluginDown(p.s.w) }

// deliver gives a link to its proc, some time after it was made.
func (w *World) deliver(p *proc, peer wire.WorldRank, terms *wireup.Resumable, e *kernel.End) {
	w.k.After(w.k.Between(0, 100*time.Microsecond), func() {
		m := wireup.Message{Kind: wireup.KindLink, Peer: peer, Transport: "sim", Resumable: terms}
		if terms != nil && !terms.Again {
			m.Compress = compressOf(w)
		}
		p.give(m, e)
	})
}

func (s *site) pluginDown(w *World) bool { return w.k.Now() < w.pluginsBack[s.rank] }

// crashPlugin kills the transport plugin of a site: existing links stay, and for a while no new
// ones can be made.
func (w *World) crashPlugin(c wire.ClientRank) {
	w.pluginsBack[c] = w.k.Now() + w.k.Between(time.Millisecond, 20*time.Millisecond)
}
