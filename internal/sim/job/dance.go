package job

import (
	"fmt"
	"time"

	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/sim/kernel"
)

func (h *host) begin() {
	s := h.s
	if h.gone {
		return
	}
	c := agent.ChannelsConfig{Job: s.job, Own: s.token, Hosts: []wire.HostRank{h.rank}, Resumes: s.resumes}
	if s.w.cfg.OnDemand {
		c.OnDemand = agent.Always
	}
	h.channels = agent.NewChannels(c)
	for _, x := range h.backlog {
		if x.elsewhere {
			h.late(x.e)
		}
	}
	s.w.k.After(s.w.k.Between(0, time.Millisecond), func() { dances(h) })
}

func dances(h *host) {
	s := h.s
	if h.ends() {
		return
	}
	d, err := h.channels.Begin(h.rank, s.w.time(), s.w.time().Add(s.w.cfg.Limit))
	if err != nil {
		s.fail(ending.NodeFailed(err))
		return
	}
	h.dance = d
	h.began = s.w.time()
	if s.w.danced == 0 {
		s.w.danced = s.w.k.Now()
	}
	tryListeners(h)
	tickDance(h)
	for _, x := range d.Dials() {
		latest := time.Millisecond
		if s.w.cfg.OnDemand && s.w.k.Chance(0.3) { // others may have all channels of the start long before that
			latest = 300 * time.Millisecond
		}
		s.w.k.After(s.w.k.Between(0, latest), func() { h.dial(x) })
	}
	for _, x := range h.backlog {
		if !x.elsewhere {
			h.accept(x.e, x.from)
		}
	}
	h.backlog = nil
	h.steps()
}

// tickDance tells the dance the time, as nodes do.
func tickDance(h *host) {
	if h.ends() || h.dance.Done() {
		return
	}
	h.dance.Tick(h.s.w.time())
	for _, peer := range h.dance.Missing() {
		if peer < h.rank {
			mustGiveUp(h, peer, h.began)
		}
	}
	h.steps()
	if !h.dance.Done() {
		h.s.w.k.After(agent.ReachLimit/5, func() { tickDance(h) })
	}
}

func (h *host) dial(x agent.Dial) {
	w := h.s.w
	way, listeners := reachOf(h, x.Host), listenersOf(h, x.Host)
	s := w.dialling(dynamic.ChannelPlan(len(listeners)), func() bool { return h.ends() || h.dance.Done() })
	s.dial = func(step dynamic.DialStep, answer func(dynamic.DialResult)) {
		limit := way.StartLimit(w.time(), make([]bool, len(listeners)-step.Candidate))
		a, failing := s.fails(w.cfg.DialFail)
		reach(h, x.Host, listeners[step.Candidate], way.Began, limit, answer, func() {
			switch peer := w.hostAt(x.Address.Address); {
			case failing:
				answer(a)
			case peer != nil && peer.silent:
				w.k.After(limit, func() { answer(unheard(dynamic.Unconnected | dynamic.TooSlow)) })
			case peer == nil || peer.ends() || x.Address.Proves && peer.closed():
				answer(unheard(dynamic.NotListening | dynamic.Unconnected))
			case s.gone():
				answer(unheard(0))
			default:
				connected(h, peer, x, listeners[step.Candidate], answer)
			}
		})
	}
	s.rests = func() {
		missed := s.FailedCandidates()
		why := missed[len(missed)-1].Err
		if way.AtStart(w.time(), missed).Silent {
			h.dance.NoAnswer(x.Host, why)
		} else {
			h.dance.DialFailed(x.Host, why)
		}
	}
	s.over = func(dynamic.DialStep) {} // greet has answered already
	if !s.gone() {
		s.begin()
	}
}

// connected makes the connection for a channel that the dance has dialled.
func connected(h, peer *host, x agent.Dial, elsewhere bool, answer func(dynamic.DialResult)) {
	w := h.s.w
	spec := w.cfg.Links.Channel
	spec.Name = fmt.Sprintf("channel %d to %d", h.rank, x.Host)
	l := h.channel(spec, x)
	w.k.After(w.k.Between(0, spec.Delay), func() { peer.arrive(arrival{l.Ends[1], h, elsewhere}) })
	if !x.Address.Proves {
		h.greet(l.Ends[0], x, x.Greeting[:], answer)
		return
	}
	h.dance.Connected(x.Host)
	h.prove(l.Ends[0], x.Host, answer, func() {
		h.dance.Dialed(h.keep(l.Ends[0]), x.Host)
		answer(dynamic.DialResult{})
		h.steps()
	})
}

func (h *host) channel(spec kernel.LinkSpec, to agent.Dial) *kernel.Link {
	w, ends := h.s.w, [2]Endpoint{h.endpoint(), {AtAgent, int(to.Host)}}
	switch {
	case h.s.resumes(h.rank, to.Host):
		return h.resumedChannel(spec, to.Host, w.hostAt(to.Address.Address), ends)
	case !to.Address.Proves:
		return w.link(spec, ends[0], ends[1])
	}
	return provenChannel(w, spec, ends, 0)
}

// provenChannel makes a link for a channel whose ends prove who they are. dialler is the number of
// the end that dials.
func provenChannel(w *Simulation, spec kernel.LinkSpec, ends [2]Endpoint, dialler int) *kernel.Link {
	p := &proving{w: w, ends: ends, dialler: dialler, busy: [2]bool{true, true}}
	p.shown = w.k.NewLink(spec, p)
	w.openLinks = append(w.openLinks, &observedLink{l: p.shown, shown: p.shown, ends: ends, proof: p})
	w.proofs[p.shown] = p
	return p.shown
}

func (s *site) resumes(local, peer wire.HostRank) bool {
	return s.w.cfg.Resume != nil && s.ours(s.job.Hosts[peer].Client)
}

func (h *host) greet(e *kernel.End, x agent.Dial, rest []byte, answer func(dynamic.DialResult)) {
	e.OnReady(nil)
	if h.ends() {
		_ = e.Close()
		return
	}
	n, err := e.Send([][]byte{rest})
	switch rest = rest[n:]; {
	case err != nil:
		_ = e.Close()
		answer(dynamic.DialResult{Err: err})
	case len(rest) == 0:
		h.dance.Dialed(h.keep(e), x.Host)
		answer(dynamic.DialResult{})
		h.steps()
	default:
		e.OnReady(func() { h.greet(e, x, rest, answer) })
	}
}

func (h *host) ends() bool { return h.s.left || h.gone }

func (h *host) keep(e *kernel.End) int {
	h.conns = append(h.conns, e)
	return len(h.conns) - 1
}

// arrival is a connection that comes to a host's listener for channels, or elsewhere: to that of a
// transport.
type arrival struct {
	e         *kernel.End
	from      *host
	elsewhere bool
}

// listenersOf returns at which listeners a host dials another one, best first: whether that is not
// the one for channels. Which pairs of hosts have a transport for their channel is fixed.
func listenersOf(h *host, peer wire.HostRank) (elsewhere []bool) {
	client := h.s.job.Hosts[peer].Client
	switch {
	case !h.channels.Proves(client):
		return []bool{false}
	case mustRoute(h.s, client):
		return []bool{true}
	case (h.rank+peer)%3 == 0:
		return []bool{false}
	}
	return []bool{true, false}
}

func (h *host) arrive(x arrival) {
	switch {
	case h.silent:
	case h.ends() || h.dance == nil && h.s.dead:
		_ = x.e.Close()
	case h.dance == nil && (!x.elsewhere || h.channels == nil):
		h.backlog = append(h.backlog, x)
	case x.elsewhere, h.dance.Done() && x.from.proves(h):
		h.late(x.e)
	default:
		h.accept(x.e, x.from)
	}
}

func (h *host) closed() bool { return h.sw != nil && !h.channels.KeepsListening(h.rank) }

func (h *host) accept(e *kernel.End, from *host) {
	conn := h.keep(e)
	h.dance.Accepted(conn, address(from.s.rank, from.number))
	e.OnReady(func() { h.listen(conn, e) })
	h.steps()
}

// listen reads a greeting, and not one byte more.
func (h *host) listen(conn int, e *kernel.End) {
	for !h.ends() {
		want := h.dance.MissingBytes(conn)
		if want == 0 {
			break
		}
		b := make([]byte, want)
		n, err := e.Recv([][]byte{b})
		if err != nil {
			e.OnReady(nil)
			_ = e.Close()
			h.dance.Closed(conn, err)
			break
		}
		if n == 0 {
			break
		}
		h.first[conn] = append(h.first[conn], b[:n]...)
		h.dance.Input(conn, b[:n])
	}
	h.steps()
}

func (h *host) steps() {
	s := h.s
	for !h.ends() {
		st, ok := h.dance.Next()
		if !ok {
			return
		}
		switch st.Kind {
		case agent.Joined:
			if old := h.links[st.Host]; old != nil {
				_ = old.Close()
			}
			h.links[st.Host] = h.conns[st.Conn]
			h.conns[st.Conn].OnReady(nil)
		case agent.Refuse:
			s.w.k.Tracef("host %d refuses: %v", h.rank, st.Err)
			h.conns[st.Conn].OnReady(nil)
			_ = h.conns[st.Conn].Close()
		case agent.Prove:
			h.proof(st.Conn)
		case agent.Complete:
			h.complete()
		case agent.TimedOut, agent.Unreachable:
			s.fail(ending.NodeFailed(st.Err))
		}
	}
}

func (h *host) complete() {
	s := h.s
	h.channels.End(h.rank)
	c := agent.ConfigOf(h.channels, h.rank, s.w.cfg.Survive, wire.Published)
	c.ChunkSize = s.w.chunkSize()
	a, err := agent.New(c)
	if err != nil {
		s.fail(ending.NodeFailed(err))
		return
	}
	if h.sw, err = h.newSwitch(a); err != nil {
		s.fail(ending.NodeFailed(err))
		return
	}
	for r := range wire.HostRank(len(s.job.Hosts)) {
		e := h.links[r]
		if e == nil {
			continue
		}
		if err := h.sw.attachHost(e, r); err != nil {
			s.fail(ending.NodeFailed(err))
			return
		}
	}
	h.channels.Ready()
	s.connected()
}
