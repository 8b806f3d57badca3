package job

import (
	"time"

	"github.com/openimpi/impi/core/compress"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/resume"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/packetswitch"
	"github.com/openimpi/impi/internal/sim/kernel"
	"github.com/openimpi/impi/internal/zstd"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// resumedChannel makes the lower link of a resumable channel that a host dials. A link that breaks
// before the dialler is accepted may already be a channel to the other host.
func (h *host) resumedChannel(spec kernel.LinkSpec, to wire.HostRank, peer *host, ends [2]Endpoint) *kernel.Link {
	w, x := h.s.w, h.resumed[to]
	if x == nil {
		x = w.newResumed(spec, ends[0], ends[1], [2]resumedEnd{h.resumedEnd(), peer.resumedEnd()})
		x.ends[1].take = func(e *kernel.End) { w.channels[e.Link()] = x; join(peer, e, h.rank) } // until the switch has the channel
		h.resumed[to] = x
	}
	p := &proving{w: w, of: x, busy: [2]bool{true, true}}
	l := x.below(p)
	w.channels[l], w.proofs[l] = x, p
	if peer.s != h.s {
		p.mayBeCut(l, spec)
	}
	return l
}

func (p *proving) mayBeCut(l *kernel.Link, spec kernel.LinkSpec) {
	w := p.w
	if !w.k.Chance(10 * w.cfg.Resume.Cuts) {
		return
	}
	w.k.After(w.k.Between(0, 8*(spec.Delay+spec.Jitter)), func() {
		if p.busy[p.dialler] || p.of != nil && p.of.ends[1-p.dialler].link == nil {
			w.met[CutLink]++
			w.k.Tracef("cut of %s before it is used", l.Name())
			l.Cut(errBroken)
		}
	})
}

func (h *host) resumedEnd() resumedEnd {
	return resumedEnd{alive: func() bool { return !h.gone && h.s.works() }, gone: func() bool { return h.sw != nil && h.sw.task.Ended() }}
}

func (h *host) endpoint() Endpoint { return Endpoint{AtAgent, int(h.rank)} }

// works reports whether the site has a node that dials and accepts.
func (s *site) works() bool { return !s.dead && (!s.left || s.finished) }

// attachHost gives the switch its end of a channel. Packets of foreign procs have been changed
// before.
func (x *hostSwitch) attachHost(e *kernel.End, peer wire.HostRank) error {
	x.ends = append(x.ends, e)
	s := x.h.s
	if r := s.w.channels[e.Link()]; r != nil {
		return x.attachResumed(r, e, peer)
	}
	if s.cfg.Foreign == nil || !s.cfg.Foreign.FalseLen {
		return x.AttachHost(e, peer, nil)
	}
	return x.AttachHost(newFalseLengths(e, s.w.k.Rand().Uint64(), func(t wire.PacketType) bool { return t == wire.PkFini }), peer, nil)
}

// attachResumed gives the switch its end of a resumable channel whose first lower link is e's.
func (x *hostSwitch) attachResumed(r *resumed, e *kernel.End, peer wire.HostRank) error {
	me, w := sideOf(e), r.w
	session, _, dials := x.h.channels.AddChannel(x.h.rank, peer)
	var ch *packetswitch.Channel
	c := packetswitch.ChannelConfig{
		Host: peer, Session: resume.ResumableID(session), Window: w.cfg.Resume.Window, Limit: w.cfg.Resume.Limit, FirstLimit: w.cfg.Limit,
		Watch: func(l link.Link) link.Link { return r.watch(l, me) },
	}
	if z := compressOf(w); z != nil {
		codec, err := zstd.New(z.Level)
		if err != nil {
			return err
		}
		c.Compress = &compress.Config{Codec: codec, Min: z.Min}
	}
	if dials {
		other := w.hosts[peer]
		c.Redial = func(_ error, limit time.Duration) {
			judge := func(bool) dynamic.DialResult {
				if other.closed() {
					return unheard(dynamic.NotListening)
				}
				return other.again(x.h)
			}
			r.dial(limit, []bool{false}, judge, func(made bool, _ dynamic.Verdict, reason string) {
				if !made {
					ch.Lose(reason)
				}
			})
		}
	}
	r.ends[me].take = func(l *kernel.End) {
		x.ends = append(x.ends, l)
		ch.SetLink(l)
	}
	var err error
	ch, err = x.AttachChannel(e, c)
	return err
}
