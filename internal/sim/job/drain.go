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

// drains is what a job knows of plugins that are drained. There are two transports: that of the
// plugin, by which all links are made first, and another one.
type drains struct {
	begun     bool
	elsewhere bool // links can be made by the other transport
	moved     int  // links that have left the plugin
	unheard   bool // a node has asked another one in vain to break a link
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
	s.drains++
	drain := s.drains
	for i := range time.Duration(8) {
		w.k.After(i*drainLook, func() {
			if s.drained && s.drains == drain {
				moveLinks(s)
			}
		})
	}
}

// undrainPlugin is the order of an operator that a site uses its plugin again.
func undrainPlugin(w *Simulation, f Fault) {
	s := w.sites[f.Target%len(w.sites)]
	if !s.drained {
		return
	}
	w.met[f.Kind]++
	w.k.Tracef("the plugin of site %d is used again", s.rank)
	s.drained = false
	s.direct.Moves.Forget()
	for x := range s.direct.Pairs.All() {
		if state := s.direct.Resumable.Get(x); state != nil {
			delete(w.sessions[resume.ResumableID(state.ID)].ordered, state)
		}
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
	case leave == dynamic.Waiting && r.ordered[state] == nil:
		disorder(w, "the link of ranks %d and %d stays with a plugin that is drained, and nobody has broken it since", x.local, x.peer)
	case begin:
		mustMove(w, r, x, state)
		breakLink(w, s, x, state)
	}
}

// noAnswer is the probability that nobody hears at the other end that a link is to be broken.
const noAnswer = 0.3

// breakLink breaks a link here, or has the other end's node break it.
func breakLink(w *Simulation, s *site, x pair, state *dynamic.ResumableLink) {
	p, lost := w.procs[x.local], state.Busy
	r := w.sessions[resume.ResumableID(state.ID)]
	broken := func() {
		// The last order, not the one that the other end's node was asked for: the transport may
		// have been used again and drained again while it did not answer.
		if o := r.ordered[state]; o == nil || o.resumes != state.Resumes {
			disorder(w, "the link of ranks %d and %d has been made again, and is broken to leave a plugin", x.local, x.peer)
		}
		p.give(wireup.Message{Kind: wireup.KindLink, Peer: x.peer, Resumable: &wireup.Resumable{
			Session: state.ID[:], Again: true, Lost: true, Epoch: dynamic.OrderedEpoch,
		}}, nil)
	}
	switch s.direct.Moves.Break(state) {
	case dynamic.BreakHere:
		broken()
	case dynamic.AskPeer:
		if lost {
			disorder(w, "rank %d is to break its link to rank %d, which is lost already", x.peer, x.local)
		}
		askPeer(w, x, state, func(heard bool) {
			if s.direct.Moves.Asked(state, heard) == dynamic.BreakHere {
				broken()
			}
			next, epoch := state.Next()
			repair(w, p, x, next, epoch)
		})
	case dynamic.Nobody:
	}
}

// askPeer asks the other end's node to break a link, and calls done when it has answered, or nobody
// has heard.
func askPeer(w *Simulation, x pair, state *dynamic.ResumableLink, done func(heard bool)) {
	if w.k.Chance(noAnswer) {
		w.drains.unheard = true
		w.k.After(w.k.Between(0, drainLook), func() { done(false) })
		return
	}
	w.k.After(w.k.Between(10*time.Microsecond, 2*time.Millisecond), func() {
		v := dynamic.Leaving
		if other := w.procs[x.peer]; other != nil && !other.s.left {
			v = arriveAgain(w, x.back(), dynamic.Hello{ResumableID: state.ID, Lost: true, Epoch: dynamic.OrderedEpoch}, true)
		}
		knows := linksOf(w, x.back()).Pairs.State(x.back()) == dynamic.Linked // otherwise our verdict is on its way there
		if v == dynamic.UnknownLink && knows && bothLinked(w, x) && undisturbed(w) {
			disorder(w, "the node of rank %d does not know the link to rank %d that it is to break", x.peer, x.local)
		}
		done(v == dynamic.Accepted)
	})
}

// mustKnow checks that a node does not take a link for lost that was broken to leave a plugin.
func mustKnow(w *Simulation, x pair) {
	moves := func(x pair) bool {
		links := linksOf(w, x)
		state := links.Resumable.Get(x)
		return state != nil && links.Moves.Moves(state)
	}
	if w.drains.begun && !w.drains.unheard && w.met[UndrainPlugin] == 0 && bothLinked(w, x) && undisturbed(w) && !moves(x) {
		disorder(w, "the node of rank %d takes the link to rank %d for lost, which was broken to leave a plugin", x.local, x.peer)
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

// undisturbed reports whether nothing but drains may break a link, or keep it from being made.
func undisturbed(w *Simulation) bool {
	for _, k := range []FaultKind{CutLink, HalfClose, Stall, PluginCrash} {
		if w.met[k] > 0 {
			return false
		}
	}
	return len(w.hits) == 0 && w.cfg.DialFail == 0 && w.cfg.Resume.Cuts == 0 && w.cfg.Resume.Parts == 0
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
	o := &moveOrder{resumes: state.Resumes, at: w.k.Now()}
	r.ordered[state] = o
	w.k.After(5*drainLook, func() {
		if r.ordered[state] == o && bothLinked(w, x) && undisturbed(w) && r.plugin {
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
	if x.away != nil {
		return x.below(nil)
	}
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
