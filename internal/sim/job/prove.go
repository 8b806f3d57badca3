package job

import (
	"encoding/binary"
	"errors"
	"io"
	"time"

	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/sim/kernel"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// greeting is one side of the greeting in which own hosts prove who they are.
type greeting interface {
	Output() []byte
	Input(b []byte) (consumed int, err error)
}

// converse runs a greeting over e until enough returns true or it fails. It reads byte by byte, as
// the bytes after the greeting belong to the agent.
func converse(e *kernel.End, g greeting, enough func() bool, done func(error)) {
	var out []byte
	end := func(err error) {
		e.OnReady(nil)
		done(err)
	}
	e.OnReady(func() {
		for {
			out = append(out, g.Output()...)
			if len(out) > 0 {
				n, err := e.Send([][]byte{out})
				if out = out[n:]; err != nil {
					end(err)
					return
				}
			}
			if len(out) > 0 {
				return
			}
			if enough() {
				end(nil)
				return
			}
			var b [1]byte
			n, err := e.Recv([][]byte{b[:]})
			if err == nil && n == 0 {
				return
			}
			if err == nil {
				_, err = g.Input(b[:])
			}
			if err != nil {
				_, _ = e.Send([][]byte{g.Output()}) // send the refusal; the peer may be gone
				end(err)
				return
			}
		}
	})
}

// limited has a greeting fail that takes longer than it may, which only firewalls make it. It returns
// what the greeting calls when it is over.
func limited(w *Simulation, e *kernel.End, done func(error)) func(error) {
	if w.cfg.Firewall == nil {
		return done
	}
	over := false
	var limit *kernel.Timer
	end := func(err error) {
		if !over {
			over = true
			limit.Stop()
			done(err)
		}
	}
	limit = w.k.After(dynamic.GreetLimit, func() {
		e.OnReady(nil)
		end(errNoGreeting)
	})
	return end
}

func nonce(k *kernel.Kernel) (n dynamic.Nonce) {
	for i := 0; i < len(n); i += 8 {
		binary.BigEndian.PutUint64(n[i:], k.Rand().Uint64())
	}
	return n
}

// prove greets a host that was dialled. It calls made if that host accepts, otherwise answer.
func (h *host) prove(e *kernel.End, to wire.HostRank, answer func(dynamic.DialResult), made func()) {
	w := h.s.w
	hello, token, ok := h.channels.Hello(h.rank, to)
	if !ok {
		answer(dynamic.DialResult{Err: errors.New("there is no secret to prove a channel with"), Failure: dynamic.Impossible})
		return
	}
	g := dynamic.NewDialler(token, nonce(w.k), hello)
	converse(e, g, g.Done, limited(w, e, func(err error) {
		switch {
		case h.ends():
			_ = e.Close()
		case err != nil:
			_ = e.Close()
			answer(g.Failed(err, errors.Is(err, io.EOF) || errors.Is(err, link.ErrBroken)))
		default:
			w.proofs[e.Link()].over(h.rank)
			made()
		}
	}))
}

func (h *host) proves(to *host) bool {
	_, _, ok := h.channels.Hello(h.rank, to.rank)
	return ok
}

func (h *host) acceptor() *dynamic.Acceptor {
	return dynamic.NewAcceptor(func(name dynamic.WorldID, of dynamic.Purpose) (dynamic.Token, bool) {
		if of != dynamic.OfChannel {
			return dynamic.Token{}, false
		}
		return h.channels.Token(h.rank, name)
	}, nonce(h.s.w.k))
}

// identify makes the peer of a new connection prove who it is, and calls done with what it wants
// and whether it may have that.
func (h *host) identify(e *kernel.End, g *dynamic.Acceptor, done func(dynamic.Hello, dynamic.Verdict, error)) {
	known := func() bool { _, ok := g.Peer(); return ok }
	converse(e, g, known, limited(h.s.w, e, func(err error) {
		hello, _ := g.Peer()
		done(hello, h.channels.Admits(h.rank, hello, true), err)
	}))
}

func (h *host) answer(e *kernel.End, g *dynamic.Acceptor, hello dynamic.Hello, v dynamic.Verdict, done func(error)) {
	if v == dynamic.Accepted {
		g.Accept()
	} else {
		g.Refuse(v)
	}
	converse(e, g, func() bool { return g.Done() || v != dynamic.Accepted }, limited(h.s.w, e, func(err error) {
		if err == nil && v != dynamic.Accepted {
			err = &dynamic.RefusedError{Hello: hello, Verdict: v}
		}
		if err == nil {
			h.s.w.proofs[e.Link()].taken(h.rank)
		}
		done(err)
	}))
}

func (h *host) proof(conn int) {
	e, g := h.conns[conn], h.acceptor()
	failed := func(err error) {
		if !h.ends() {
			h.dance.Closed(conn, err)
			h.steps()
		}
	}
	if _, err := g.Input(h.first[conn]); err != nil {
		failed(err)
		return
	}
	h.identify(e, g, func(hello dynamic.Hello, v dynamic.Verdict, err error) {
		if err != nil || h.ends() {
			failed(err)
			return
		}
		from := wire.HostRank(hello.Src)
		if v == dynamic.Accepted {
			v, _ = h.dance.Admits(conn, from)
		}
		h.answer(e, g, hello, v, func(err error) {
			switch {
			case err != nil || h.ends():
				failed(err)
			case !h.dance.Proven(conn, from):
				_ = e.Close()
			default:
				h.steps()
			}
		})
	})
}

// late takes a connection that does not come to a dance.
func (h *host) late(e *kernel.End) {
	h.onDemand = append(h.onDemand, e)
	g := h.acceptor()
	h.identify(e, g, func(hello dynamic.Hello, v dynamic.Verdict, err error) {
		if err != nil {
			_ = e.Close()
			return
		}
		h.settle(e, g, hello, v, h.s.w.time().Add(dynamic.GreetLimit))
	})
}

// settle decides what a late connection is for, as soon as that is known, if it is in time.
func (h *host) settle(e *kernel.End, g *dynamic.Acceptor, hello dynamic.Hello, v dynamic.Verdict, end time.Time) {
	if h.ends() || !h.s.w.time().Before(end) {
		_ = e.Close()
		return
	}
	var target agent.ArrivalTarget
	if v == dynamic.Accepted {
		if target, v = h.channels.Arrive(hello); target == agent.NotReady {
			if h.channels.OnDemand(h.rank, wire.HostRank(hello.Src)) {
				disorder(h.s.w, "host %d has host %d wait with a channel on demand: that one may give up meanwhile", h.rank, hello.Src)
			}
			h.s.w.k.After(time.Millisecond, func() { h.settle(e, g, hello, v, end) })
			return
		}
	}
	if target == agent.ToHost {
		h.expect(e, g, hello)
		return
	}
	h.answer(e, g, hello, v, func(err error) {
		switch {
		case err != nil || h.ends():
			_ = e.Close()
		case target == agent.ToDance:
			join(h, e, wire.HostRank(hello.Src))
		default:
			h.s.w.k.Tracef("host %d takes a channel that host %d has not got yet", h.rank, hello.Src)
			h.s.w.channels[e.Link()].ends[sideOf(e)].take(e)
		}
	})
}

// join gives the dance a connection that has proved itself elsewhere.
func join(h *host, e *kernel.End, from wire.HostRank) {
	conn := h.keep(e)
	if !h.dance.ProvenElsewhere(conn, from) {
		_ = e.Close()
	}
	h.steps()
}

// again is this node's answer when another host dials a channel again.
func (h *host) again(from *host) dynamic.DialResult {
	hello, _, ok := from.channels.Hello(from.rank, h.rank)
	if !ok {
		return said(dynamic.UnknownRank)
	}
	if h.channels == nil {
		return unheard(dynamic.NotListening) // not yet
	}
	v := h.channels.Admits(h.rank, hello, true)
	if v == dynamic.Accepted {
		var target agent.ArrivalTarget
		switch target, v = h.channels.Arrive(hello); {
		case target == agent.NotReady:
			return unheard(dynamic.NotListening) // not yet
		case target == agent.ToHost && !h.sw.agent.ExpectHost(from.rank):
			h.channels.Drop(hello)
			v = dynamic.Leaving
		}
	}
	if v != dynamic.Accepted {
		return said(v)
	}
	return dynamic.DialResult{}
}

// proving hides from an observer the bytes by which the ends of a channel prove who they are. The
// observer is shown the channel when one end has accepted the other, beginning with the greeting of
// IMPI, for which the proof stands.
type proving struct {
	observed
	w     *Simulation
	of    *resumed // the resumable link over this channel, or nil
	shown *kernel.Link
	ends  [2]Endpoint
	told  bool    // the observer knows the link
	cut   bool    // bytes of the channel may have been lost before the observer knew it
	busy  [2]bool // by end: the greeting of the end is not over

	dialler int // number of the end that dialled; the observer sees the channel as if end 0 had dialled
}

func sideOf(e *kernel.End) int {
	if e == e.Link().Ends[1] {
		return 1
	}
	return 0
}

func (p *proving) tell() {
	switch {
	case p.of != nil:
		p.of.tell()
	case !p.told && p.w.cfg.Observer != nil:
		p.to = p.w.cfg.Observer.Link(p.shown, p.ends)
		if p.cut {
			p.w.cut(p.shown)
		}
	}
	p.told = true
}

// taken is called when host at, which was dialled, has accepted.
func (p *proving) taken(at wire.HostRank) {
	p.busy[1-p.dialler] = false
	p.tell()
	switch {
	case p.dialler == 1:
		p.greet(at)
	case p.of == nil: // not done in over: the dialler's end may be half closed by then
		p.greet(wire.HostRank(p.ends[0].Number))
	}
}

// over is called when the dialler learns that host at has accepted it.
func (p *proving) over(at wire.HostRank) {
	p.busy[p.dialler] = false
	p.tell()
	if p.dialler == 0 && p.of != nil {
		p.greet(at)
	}
}

// greet shows the observer the greeting of the host that has the first end.
func (p *proving) greet(first wire.HostRank) {
	to, shown := p.to, p.shown
	if p.of != nil {
		to, shown = p.of.watcher, p.of.shown
	}
	if to != nil {
		b := binary.BigEndian.AppendUint32(nil, uint32(first))
		to.Sent(shown.Ends[0], b)
		tell(to, shown.Ends[1], b)
	}
}

// Sent forwards everything except the proof.
func (p *proving) Sent(from *kernel.End, data []byte) {
	if !p.busy[sideOf(from)] {
		p.observed.Sent(from, data)
	}
}

// Received forwards everything except the proof.
func (p *proving) Received(to *kernel.End, n int) {
	if !p.busy[sideOf(to)] {
		p.observed.Received(to, n)
	}
}
