package job

import (
	"cmp"
	"fmt"
	"slices"
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
	w         *Simulation
	p         *proc
	x         pair
	endpoints []dynamic.TransportAddress
	spec      kernel.LinkSpec
	l         *kernel.Link
	r         *resumed // nil: the link is not resumable
}

func (w *Simulation) open(p *proc, peer wire.WorldRank) {
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

func (w *Simulation) dialling(s *dynamic.DialPlan, gone func() bool) *dialling {
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
		d.r.plugin = !w.drains.elsewhere || !p.s.drained && !other.s.drained
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

func (w *Simulation) reopen(p *proc, m wireup.Message) {
	x, other := pair{p.rank, m.Peer}, w.procs[m.Peer]
	state := w.direct.Resumable.Get(x)
	judge := func(h dynamic.Hello) dynamic.Verdict {
		return w.direct.Resumable.CheckResume(x.back(), h, other.fini)
	}
	done := func(v dynamic.Verdict, reason string) {
		if state.Busy = false; v != dynamic.Accepted {
			p.give(wireup.Message{Kind: wireup.KindLink, Peer: x.peer, Reason: reason, Resumable: &wireup.Resumable{
				Session: m.Resumable.Session, Again: true, Over: v == dynamic.Leaving,
			}}, nil)
		}
	}
	switch w.direct.Resumable.Repair(x, m.Resumable.Session, m.Resumable.Over) {
	case dynamic.Redial:
		w.sessions[resume.SessionID(state.ID)].dial(w.cfg.Resume.Limit, ways(p.s), func(plugin bool) (a dynamic.DialResult) {
			if other.refuses(x.back(), plugin) {
				return said(dynamic.NotAllowed)
			}
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
func (w *Simulation) deliver(p *proc, peer wire.WorldRank, terms *wireup.Resumable, e *kernel.End) {
	w.k.After(w.k.Between(0, 100*time.Microsecond), func() {
		m := wireup.Message{Kind: wireup.KindLink, Peer: peer, Transport: "sim", Resumable: terms}
		if terms != nil && !terms.Again {
			m.Compress = compressOf(w)
		}
		p.give(m, e)
	})
}

func (s *site) pluginDown(w *Simulation) bool { return w.k.Now() < w.pluginsBack[s.rank] }

// crashPlugin kills the transport plugin of a site: existing links stay, and for a while no new
// ones can be made.
func (w *Simulation) crashPlugin(c wire.ClientRank) {
	w.pluginsBack[c] = w.k.Now() + w.k.Between(time.Millisecond, 20*time.Millisecond)
}

// drains is what a job knows of plugins that are drained. There are two transports: that of the
// plugin, by which all links are made first, and another one.
type drains struct {
	begun     bool
	elsewhere bool // links can be made by the other transport
	moved     int  // links that have left the plugin
}

// drainLook is how often an operator looks how far a drain is.
const drainLook = 100 * time.Millisecond

// drainPlugin is the order of an operator that a site drains its plugin.
func drainPlugin(w *Simulation, f Fault) {
	s := w.sites[f.Target%len(w.sites)]
	w.met[f.Kind]++
	if !w.drains.begun {
		w.drains.begun, w.drains.elsewhere = true, f.Target%4 > 0
	}
	if s.cfg.Foreign != nil || s.drained {
		return
	}
	w.k.Tracef("the plugin of site %d is drained", s.rank)
	s.drained = true
	for i := range time.Duration(8) {
		w.k.After(i*drainLook, func() { moveLinks(s) })
	}
}

func moveLinks(s *site) {
	w := s.w
	if s.left || s.dead {
		return
	}
	var all []pair
	for x, phase := range w.direct.Pairs.All() {
		if p := w.procs[x.local]; phase == dynamic.Linked && p != nil && p.s == s && !p.fini {
			all = append(all, x)
		}
	}
	slices.SortFunc(all, func(a, b pair) int { return cmp.Or(int(a.local-b.local), int(a.peer-b.peer)) })
	for _, x := range all {
		moveLink(w, s, x)
	}
}

func moveLink(w *Simulation, s *site, x pair) {
	state := w.direct.Resumable.Get(x)
	var r *resumed
	if state != nil {
		if r = w.sessions[resume.SessionID(state.ID)]; !r.plugin {
			return
		}
	}
	switch leave, begin := s.moves.Order(w.time(), state, w.drains.elsewhere); {
	case leave == dynamic.Waiting && !w.drains.elsewhere:
		mustStay(w, x, state)
	case leave == dynamic.Moving && !begin && r.ordered[state] == nil:
		disorder(w, "the link of ranks %d and %d is to leave a plugin, and nobody has broken it", x.local, x.peer)
	case begin:
		mustMove(w, r, x, state)
		breakLink(w, s, x, state)
	}
}

// breakLink breaks a link here, or has the other end's node break it, which dials it.
func breakLink(w *Simulation, s *site, x pair, state *dynamic.ResumableLink) {
	p, other := w.procs[x.local], w.procs[x.peer]
	broken := func(p *proc, peer pair) {
		p.give(wireup.Message{Kind: wireup.KindLink, Peer: peer.peer, Resumable: &wireup.Resumable{
			Session: state.ID[:], Again: true, Lost: true, Epoch: dynamic.OrderedEpoch,
		}}, nil)
	}
	switch {
	case state.Dialled:
		broken(p, x)
		return
	case state.Busy:
		return // it is lost, and made again without the plugin
	}
	state.Busy = true
	w.k.After(w.k.Between(10*time.Microsecond, 2*time.Millisecond), func() {
		state.Busy = false
		v := dynamic.Leaving
		if other != nil && !other.s.left {
			v = w.direct.Resumable.CheckResume(x.back(), dynamic.Hello{ResumableID: state.ID, Lost: true, Epoch: dynamic.OrderedEpoch}, other.fini)
		}
		switch back := w.direct.Resumable.Get(x.back()); {
		case v != dynamic.Accepted:
			broken(p, x)
		case !back.Making:
			other.s.moves.Ordered(w.time(), back)
			broken(other, x.back())
		}
	})
}

// ways returns by what a site dials a lost link again, best first: whether by the plugin.
func ways(s *site) []bool {
	switch {
	case !s.w.drains.elsewhere:
		return []bool{true}
	case s.drained:
		return []bool{false, true}
	}
	return []bool{true, false}
}

// refuses reports whether a proc's node refuses a further connection of a link by the plugin.
func (p *proc) refuses(x pair, plugin bool) bool {
	state := p.s.w.direct.Resumable.Get(x)
	return plugin && p.s.drained && p.s.w.drains.elsewhere && state != nil && p.s.moves.Refuses(p.s.w.time(), state, p.s.w.cfg.Resume.Limit)
}

// again counts a further connection of a direct link at one end.
func (x *resumed) again(me int) {
	if x.places[me].Kind != AtProc {
		return
	}
	at := pair{wire.WorldRank(x.places[me].Number), wire.WorldRank(x.places[1-me].Number)}
	if s := x.w.direct.Resumable.Get(at); s != nil && resume.SessionID(s.ID) == x.session {
		s.Resumes++
	}
}

// undisturbed reports whether nothing but drains may break a link, or keep it from being made.
func undisturbed(w *Simulation) bool {
	for _, k := range []FaultKind{CutLink, HalfClose, Stall, PluginCrash} {
		if w.met[k] > 0 {
			return false
		}
	}
	return len(w.hits) == 0 && w.cfg.DialFail == 0 && w.cfg.Resume.Cuts == 0
}

// mustMove checks, later on, that a link that was ordered to leave the plugin has left it, and that
// it was ordered once.
func mustMove(w *Simulation, r *resumed, x pair, state *dynamic.ResumableLink) {
	switch {
	case !w.drains.elsewhere:
		disorder(w, "the link of ranks %d and %d was broken to leave a plugin, though there is no other transport", x.local, x.peer)
	case r.ordered[state] != nil:
		disorder(w, "the link of ranks %d and %d was broken twice to leave a plugin", x.local, x.peer)
	}
	if r.ordered == nil {
		r.ordered = make(map[*dynamic.ResumableLink]*moveOrder)
	}
	r.ordered[state] = &moveOrder{resumes: state.Resumes, at: w.k.Now()}
	w.k.After(5*drainLook, func() {
		if bothLinked(w, x) && undisturbed(w) && r.plugin {
			disorder(w, "the link of ranks %d and %d has not left the plugin that is drained", x.local, x.peer)
		}
	})
}

// moveOrder is an order that a link leaves the plugin.
type moveOrder struct {
	resumes int // how often it had been resumed by then
	at      time.Duration
}

// disorder records that the job does something that no fault excuses.
func disorder(w *Simulation, format string, args ...any) {
	if w.wrong == nil {
		w.wrong = fmt.Errorf("%w: %s", ErrDisorder, fmt.Sprintf(format, args...))
	}
}

// mustStay checks, later on, that a link that cannot leave the plugin was not broken.
func mustStay(w *Simulation, x pair, state *dynamic.ResumableLink) {
	resumes := state.Resumes
	w.k.After(drainLook/2, func() {
		if bothLinked(w, x) && undisturbed(w) && state.Resumes != resumes {
			disorder(w, "the link of ranks %d and %d was broken, though there is no other transport", x.local, x.peer)
		}
	})
}

// bothLinked reports whether both ends of a link are in MPI.
func bothLinked(w *Simulation, x pair) bool {
	for _, p := range []*proc{w.procs[x.local], w.procs[x.peer]} {
		if p == nil || p.fini || p.ending || p.crashed || p.s.left || p.s.dead || p.task.Ended() {
			return false
		}
	}
	return true
}

// replaces records by what a lost link is made again. A node that has just ordered that the link
// leaves the plugin takes none by it.
func (x *resumed) replaces(plugin bool) *kernel.Link {
	state := x.w.direct.Resumable.Get(pair{wire.WorldRank(x.places[1].Number), wire.WorldRank(x.places[0].Number)})
	o := x.ordered[state]
	if plugin && o != nil && o.resumes == state.Resumes && x.w.k.Now()-o.at < min(time.Second, x.w.cfg.Resume.Limit/2) {
		disorder(x.w, "%s was resumed by the plugin that it has to leave", x.shown.Name())
	}
	if x.plugin && !plugin {
		x.w.drains.moved++
	}
	x.plugin = plugin
	return x.below(nil)
}
