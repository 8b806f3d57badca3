package job

import (
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/packetswitch"
	"github.com/openimpi/impi/internal/sim/kernel"
)

// prelude shows the observer of a resumable link what is said before it is one:
// the greeting of a channel.
type prelude struct {
	*resumed
	greeting []byte
	left     int // bytes of it that are still to come
}

// Sent passes on the greeting.
func (p *prelude) Sent(_ *kernel.End, data []byte) {
	data = data[:min(len(data), p.left)]
	p.left -= len(data)
	if len(data) > 0 && p.watcher != nil {
		p.greeting = append(p.greeting, data...)
		p.watcher.Sent(p.shown.Ends[0], data)
	}
}

// Received passes on the greeting.
func (p *prelude) Received(_ *kernel.End, n int) {
	n = min(n, len(p.greeting))
	if n > 0 {
		tell(p.watcher, p.shown.Ends[1], p.greeting[:n])
		p.greeting = p.greeting[n:]
	}
}

// Ended is not passed on: there may be another link.
func (p *prelude) Ended(*kernel.End) {}

// resumedChannel makes the link that a host dials a channel with, if it is to be resumed.
func (h *host) resumedChannel(spec kernel.LinkSpec, peer *host) *kernel.Link {
	w := h.s.w
	x := w.newResumed(spec, h.endpoint(), Endpoint{AtAgent, int(h.s.job.HostOf(peer.s.rank, peer.number))}, [2]resumedEnd{h.resumedEnd(), peer.resumedEnd()})
	l := x.below(&prelude{resumed: x, left: 4})
	w.strands[len(w.strands)-1].resumes = false // until both agents have it
	w.channels[l] = x
	return l
}

func (h *host) resumedEnd() resumedEnd {
	return resumedEnd{alive: func() bool { return !h.gone && h.s.works() }, gone: func() bool { return h.sw != nil && h.sw.task.Ended() }}
}

func (h *host) endpoint() Endpoint { return Endpoint{AtAgent, int(h.rank)} }

// works tells whether the site has a node that dials and accepts.
func (s *site) works() bool { return !s.dead && (!s.left || s.finished) }

// attachHost gives the switch its end of a channel. What procs that are not ours send was changed
// before.
func (x *hostSwitch) attachHost(e *kernel.End, peer wire.HostRank) error {
	x.ends = append(x.ends, e)
	s := x.h.s
	if r := s.w.channels[e.Link()]; r != nil {
		return x.attachResumed(r, e, peer)
	}
	if s.cfg.Foreign == nil || !s.cfg.Foreign.FalseLen {
		return x.AttachHost(e, peer)
	}
	return x.AttachHost(newLiar(e, s.w.k.Rand().Uint64(), func(t wire.PacketType) bool { return t == wire.PkFini }), peer)
}

// attachResumed gives the switch its end of a channel that is resumed, whose first link below is
// e's.
func (x *hostSwitch) attachResumed(r *resumed, e *kernel.End, peer wire.HostRank) error {
	me := 0
	if e == e.Link().Ends[1] {
		me = 1
	}
	w := r.w
	var ch *packetswitch.Channel
	c := packetswitch.ChannelConfig{
		Host: peer, Session: r.session, Window: w.cfg.Resume.Window, Limit: w.cfg.Resume.Limit, First: w.cfg.Limit,
		Watch: func(l link.Link) link.Link { return r.watch(l, me) },
	}
	if me == 0 {
		c.Again = func(error) {
			r.dial(accepts, func(v dynamic.Verdict, reason string) {
				if v != dynamic.Accepted {
					ch.Lose(reason)
				}
			})
		}
	}
	r.ends[me].take = func(l *kernel.End) {
		x.ends = append(x.ends, l)
		ch.Take(l)
	}
	if r.ends[1-me].take != nil {
		for _, s := range w.strands {
			s.resumes = s.resumes || s.l == e.Link()
		}
	}
	var err error
	ch, err = x.AttachChannel(e, c)
	return err
}

// accepts is what a node answers who dials a channel again that it has.
func accepts() dynamic.Verdict { return dynamic.Accepted }
