package job

import (
	"fmt"

	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/sim/kernel"
)

func (h *host) want(peer wire.HostRank) {
	w, given, done := h.s.w, false, false
	way := reachOf(h, peer)
	listeners := listenersOf(h, peer)
	m := h.channels.Request(h.rank, peer, len(listeners), agent.OnDemandTime(h.began.Add(w.cfg.Limit).Sub(w.time()), resumeLimit(w)))
	if m == nil {
		return
	}
	var e *kernel.End
	s := w.dialling(m, func() bool { return done || h.ends() })
	s.isOnlyPlan(w, [2]wire.HostRank{h.rank, peer})
	s.dial = func(step dynamic.DialStep, answered func(dynamic.DialResult)) {
		answer := func(a dynamic.DialResult) {
			if a.Verdict == dynamic.NotAllowed {
				disorder(w, "host %d says that it takes no channel from host %d, which routes allow", peer, h.rank)
			}
			answered(a)
		}
		limit := way.OnDemandLimit(w.time(), make([]bool, len(listeners)-step.Candidate))
		w.k.After(w.k.Between(0, w.cfg.Links.Channel.Delay), func() {
			a, failing := s.fails(w.cfg.DialFail)
			reach(h, peer, listeners[step.Candidate], way.Began, limit, answer, func() {
				switch other := w.hosts[peer]; {
				case failing:
					answer(a)
				case other != nil && other.silent:
					w.k.After(limit, func() { answer(unheard(dynamic.Unconnected | dynamic.TooSlow)) })
				case other == nil || other.ends() || other.closed():
					answer(unheard(dynamic.NotListening | dynamic.Unconnected))
				case h.ends():
				default:
					e = h.connect(peer, other, listeners[step.Candidate])
					h.prove(e, peer, answer, func() { answer(dynamic.DialResult{}) })
				}
			})
		})
	}
	s.left = func() {
		if !given {
			h.channels.Stop(h.rank, peer)
		}
	}
	s.rests = func() {
		mustGiveUp(h, peer, way.Began)
		if given = way.OnDemand(w.time(), s.FailedCandidates()).Silent; given {
			done = true
			err := fmt.Errorf("host %d does not answer: %v", peer, s.FailedCandidates())
			h.post(func(a *agent.Agent) { a.NoChannel(peer, err) })
			return
		}
		h.post(func(a *agent.Agent) { done = !a.ChannelDialFailed(peer) })
	}
	s.over = func(last dynamic.DialStep) {
		mustGiveUp(h, peer, way.Began)
		switch last.Action {
		case dynamic.KeepLink:
			h.attach(e, peer)
		case dynamic.CloseLink:
			_ = e.Close()
		case dynamic.GiveUp:
			err := fmt.Errorf("host %d was not reached: %v", peer, s.FailedCandidates())
			if last.Verdict == dynamic.Leaving {
				err = nil
			}
			h.post(func(a *agent.Agent) { a.NoChannel(peer, err) })
		default:
		}
	}
	s.begin()
}

// post runs f with the agent in the host's switch. It returns false if the switch has ended.
func (h *host) post(f func(*agent.Agent)) bool {
	return h.sw.Post(func() { f(h.sw.agent) })
}

func (h *host) attach(e *kernel.End, peer wire.HostRank) {
	e.OnReady(nil)
	ok := h.post(func(*agent.Agent) {
		if err := h.sw.attachHost(e, peer); err != nil {
			h.s.w.k.Tracef("host %d: the channel of host %d: %v", h.rank, peer, err)
			_ = e.Close()
		}
	})
	if !ok {
		_ = e.Close()
	}
}

func (h *host) expect(e *kernel.End, g *dynamic.Acceptor, hello dynamic.Hello) {
	peer, v := wire.HostRank(hello.Src), dynamic.Accepted
	if !h.sw.agent.ExpectHost(peer) {
		h.channels.Drop(hello)
		v = dynamic.Leaving
	}
	h.answer(e, g, hello, v, func(err error) {
		switch {
		case err == nil && !h.ends():
			h.attach(e, peer)
			return
		case v == dynamic.Accepted:
			h.channels.Drop(hello)
			h.post(func(a *agent.Agent) { a.UnexpectHost(peer) })
		}
		_ = e.Close()
	})
}

// connect makes a link for a channel on demand, and gives the other host its end. Whoever dials,
// the host of higher rank has the first end, as in a dance.
func (h *host) connect(peer wire.HostRank, other *host, elsewhere bool) *kernel.End {
	w := h.s.w
	spec := w.cfg.Links.Channel
	spec.Name = fmt.Sprintf("channel %d to %d", h.rank, peer)
	first, second, side := h, other, 0
	if peer > h.rank {
		first, second, side = other, h, 1
	}
	ends := [2]Endpoint{first.endpoint(), second.endpoint()}
	var l *kernel.Link
	if h.s.resumes(h.rank, peer) {
		l = resumedOnDemand(w, spec, [2]*host{first, second}, ends, side)
	} else {
		l = provenChannel(w, spec, ends, side)
	}
	w.k.After(w.k.Between(0, spec.Delay), func() { other.arrive(arrival{l.Ends[1-side], h, elsewhere}) })
	h.onDemand = append(h.onDemand, l.Ends[side])
	return l.Ends[side]
}

// resumedOnDemand makes a lower link of a resumable channel. Both hosts get the same channel even
// if both make it.
func resumedOnDemand(w *Simulation, spec kernel.LinkSpec, hosts [2]*host, ends [2]Endpoint, dialler int) *kernel.Link {
	x := hosts[0].resumed[hosts[1].rank]
	if x == nil {
		x = w.newResumed(spec, ends[0], ends[1], [2]resumedEnd{hosts[0].resumedEnd(), hosts[1].resumedEnd()})
		hosts[0].resumed[hosts[1].rank] = x
		for i, h := range hosts { // until the switch has the channel
			x.ends[i].take = func(e *kernel.End) { w.channels[e.Link()] = x; h.attach(e, hosts[1-i].rank) }
		}
	}
	p := &proving{w: w, of: x, dialler: dialler, busy: [2]bool{true, true}}
	l := x.below(p)
	w.channels[l], w.proofs[l] = x, p
	p.mayBeCut(l, spec)
	return l
}
