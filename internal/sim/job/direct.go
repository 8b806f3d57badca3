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
	if linksOf(w, x).Request(x) {
		dialDirect(w, p, x)
	}
}

// dialDirect dials for a link that a proc has asked for.
func dialDirect(w *Simulation, p *proc, x pair) {
	d := &linking{w: w, p: p, x: x, endpoints: p.s.with(w.job.Procs.At(x.peer).Client).endpoints(), spec: w.cfg.Links.Direct}
	d.spec.Name = fmt.Sprintf("direct %d to %d", x.local, x.peer)
	limit := time.Duration(0)
	if w.cfg.Resume != nil {
		limit = w.cfg.Resume.Limit
	}
	s := w.dialling(dynamic.DirectLinkPlan(len(d.endpoints), &linksOf(w, x).Pairs, x, limit), func() bool { return p.s.left })
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
	case step.Resumes:
		to := other.receiver()
		to.Allowed = other.s.with(d.p.s.rank).allows(d.endpoints[step.Candidate].Transport)
		_, v := linksOf(w, d.x.back()).ArriveAgain(w.time(), d.x.back(), dynamic.Hello{ResumableID: d.session(), Resumes: true}, to, w.cfg.Resume.Limit)
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
		linksOf(w, x).Abandon(x)
		d.r = w.newResumed(d.spec, p.endpoint(), other.endpoint(), [2]resumedEnd{{alive: p.dials, gone: p.task.Ended}, {alive: other.dials, gone: other.task.Ended}})
		d.r.plugin = !w.drains.elsewhere || !p.s.drained && !other.s.drained
		d.r.tell()
	}
	broken := d.breaks()
	if broken == beforeProof {
		d.broken(false, answer)
		return
	}
	links, to := linksOf(w, x.back()), other.receiver()
	to.Allowed = other.s.with(p.s.rank).allows(d.endpoints[step.Candidate].Transport)
	if v := links.Arrive(x.back(), dynamic.Hello{ResumableID: d.session()}, to, x.local < x.peer); v != dynamic.Accepted {
		answer(said(v))
		return
	}
	if name := d.endpoints[step.Candidate].Transport; len(other.s.with(p.s.rank).usable([]string{name})) == 0 {
		disorder(w, "the link of ranks %d and %d is accepted by %s, which the route does not allow", x.local, x.peer, name)
	}
	if broken == beforeAnswer {
		w.k.After(w.k.Between(0, 300*time.Microsecond), func() {
			if links.LostBeforeUse(x.back()) {
				dialDirect(w, other, x.back())
			}
			d.broken(true, answer)
		})
		return
	}
	links.Given(x.back())
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
		if broken == afterAnswer {
			d.l.Cut(errBroken)
			d.broken(true, answer)
			return
		}
		if p.s.left {
			_ = d.l.Ends[0].Close()
		}
		answer(dynamic.DialResult{})
	})
}

// breaking is where the greeting of a link breaks.
type breaking int

const (
	nowhere      breaking = iota
	beforeProof           // before the dialler has proved itself
	beforeAnswer          // the peer's node has accepted the link and cannot say so
	afterAnswer           // the peer's proc has the link, and the dialler does not know it
)

// breaks decides where the greeting of a link breaks. One that does not resume does not break when
// its peer has it, as that ends the job.
func (d *linking) breaks() breaking {
	w, most := d.w, afterAnswer
	chance := w.cfg.DialFail / 2
	if d.r != nil {
		chance = w.cfg.Resume.Cuts
	} else {
		most = beforeAnswer
	}
	if !w.k.Chance(chance) {
		return nowhere
	}
	return beforeProof + breaking(w.k.Rand().IntN(int(most)))
}

func (d *linking) broken(proved bool, answer func(dynamic.DialResult)) {
	failure := dynamic.GreetingFailed(proved, true, d.r != nil)
	if failure&dynamic.Uncertain != 0 {
		linksOf(d.w, d.x).Uncertain(d.x, d.session())
	}
	answer(dynamic.DialResult{Err: errBroken, Failure: failure})
}

func (d *linking) over(last dynamic.DialStep) {
	w, p, x := d.w, d.p, d.x
	switch last.Action {
	case dynamic.KeepLink:
		linksOf(w, x).Made(x, d.session())
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
	linksOf(w, x).Abandon(x)
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
	x, links := pair{p.rank, m.Peer}, &p.s.direct
	state, what := links.Resumable.Get(x), links.Resumable.Repair(x, m.Resumable.Session, m.Resumable.Over)
	done := func(made bool, v dynamic.Verdict, reason string) {
		if tell, over := state.Repaired(what, made, v); tell {
			p.give(wireup.Message{Kind: wireup.KindLink, Peer: x.peer, Reason: reason, Resumable: &wireup.Resumable{
				Session: m.Resumable.Session, Again: true, Over: over,
			}}, nil)
		}
	}
	switch what {
	case dynamic.Redial:
		w.sessions[resume.ResumableID(state.ID)].dial(w.cfg.Resume.Limit, ways(p.s), func(plugin bool) (a dynamic.DialResult) {
			if v := arriveAgain(w, x.back(), dynamic.Hello{ResumableID: state.ID, Resumes: true}, plugin); v != dynamic.Accepted {
				a = said(v)
			}
			return a
		}, done)
	case dynamic.TellPeer:
		w.k.After(w.k.Between(10*time.Microsecond, 2*time.Millisecond), func() {
			v := arriveAgain(w, x.back(), dynamic.Hello{ResumableID: state.ID, Lost: true, Epoch: m.Resumable.Epoch}, true)
			done(v == dynamic.Accepted, v, "the other end has no such link")
		})
	case dynamic.NoRepair, dynamic.NoSuchLink:
	}
}

// linksOf returns the direct links of the node that has the first proc of a pair.
func linksOf(w *Simulation, x pair) *dynamic.DirectLinks[pair] {
	return &w.sites[w.job.Procs.At(x.local).Client].direct
}

// receiver returns what a proc's node knows of it when a link arrives.
func (p *proc) receiver() dynamic.Receiver {
	return dynamic.Receiver{Known: true, InMPI: !p.fini && !p.s.left, Finished: p.fini, Ended: p.judged}
}

// arriveAgain is what a node does with a further connection of a link, by the plugin or not, or with
// the word that the link is lost at its other end.
func arriveAgain(w *Simulation, x pair, h dynamic.Hello, plugin bool) dynamic.Verdict {
	links, p := linksOf(w, x), w.procs[x.local]
	to := p.receiver()
	to.Allowed, to.Leaves = true, plugin && p.s.drained && w.drains.elsewhere
	state, v := links.ArriveAgain(w.time(), x, h, to, w.cfg.Resume.Limit)
	if v == dynamic.Accepted && h.Lost && links.LostAtPeer(w.time(), state, h) {
		p.give(wireup.Message{Kind: wireup.KindLink, Peer: x.peer, Resumable: &wireup.Resumable{
			Session: state.ID[:], Again: true, Lost: true, Epoch: h.Epoch,
		}}, nil)
	}
	return v
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
	for x, phase := range s.direct.Pairs.All() {
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
	state := s.direct.Resumable.Get(x)
	var r *resumed
	if state != nil {
		if r = w.sessions[resume.ResumableID(state.ID)]; !r.plugin {
			return
		}
	}
	switch leave, begin := s.direct.Moves.Order(w.time(), state, w.drains.elsewhere); {
	case leave == dynamic.Waiting && !w.drains.elsewhere:
		mustStay(w, x, state)
	case leave == dynamic.Moving && !begin && r.ordered[state] == nil:
		disorder(w, "the link of ranks %d and %d is to leave a plugin, and nobody has broken it", x.local, x.peer)
	case begin:
		mustMove(w, r, x, state)
		breakLink(w, s, x, state)
	}
}

// breakLink breaks a link here, or has the other end's node break it.
func breakLink(w *Simulation, s *site, x pair, state *dynamic.ResumableLink) {
	p, other := w.procs[x.local], w.procs[x.peer]
	broken := func() {
		p.give(wireup.Message{Kind: wireup.KindLink, Peer: x.peer, Resumable: &wireup.Resumable{
			Session: state.ID[:], Again: true, Lost: true, Epoch: dynamic.OrderedEpoch,
		}}, nil)
	}
	switch s.direct.Moves.Break(state) {
	case dynamic.BreakHere:
		broken()
	case dynamic.AskPeer:
		w.k.After(w.k.Between(10*time.Microsecond, 2*time.Millisecond), func() {
			v := dynamic.Leaving
			if other != nil && !other.s.left {
				v = arriveAgain(w, x.back(), dynamic.Hello{ResumableID: state.ID, Lost: true, Epoch: dynamic.OrderedEpoch}, true)
			}
			if s.direct.Moves.Asked(state, v == dynamic.Accepted) == dynamic.BreakHere {
				broken()
			}
		})
	case dynamic.Nobody:
	}
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

// again counts a further connection of a direct link at one end.
func (x *resumed) again(me int) {
	if x.places[me].Kind != AtProc {
		return
	}
	at := pair{wire.WorldRank(x.places[me].Number), wire.WorldRank(x.places[1-me].Number)}
	if s := linksOf(x.w, at).Resumable.Get(at); s != nil && resume.ResumableID(s.ID) == x.session {
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
	var state *dynamic.ResumableLink
	if x.places[1].Kind == AtProc {
		at := pair{wire.WorldRank(x.places[1].Number), wire.WorldRank(x.places[0].Number)}
		state = linksOf(x.w, at).Resumable.Get(at)
	}
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
