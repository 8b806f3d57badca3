package job

import (
	"github.com/openimpi/impi/internal/sim/kernel"
)

// prelude shows the observer of a lasting link what is said before it is one:
// the greeting of a channel.
type prelude struct {
	*lasting
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

// lastingChannel makes the link that a host dials a channel with, if it is to last.
func (h *host) lastingChannel(spec kernel.LinkSpec, peer *host) *kernel.Link {
	w := h.s.w
	l := w.newLasting(spec, h.endpoint(), Endpoint{AtAgent, int(h.s.job.HostOf(peer.s.rank, peer.number))}, [2]func() bool{h.s.works, peer.s.works})
	p := &prelude{lasting: l, left: 4}
	link := l.below(p)
	w.strands[len(w.strands)-1].lasts = false // until both agents have it
	w.channels[link] = l
	return link
}

func (h *host) endpoint() Endpoint { return Endpoint{AtAgent, int(h.rank)} }

// works tells whether the site has a node that dials and accepts.
func (s *site) works() bool { return !s.dead && (!s.left || s.finished) }

// lastingEndOf gives a host what its agent gets, if e is the first link below a
// channel that lasts.
func (w *World) lastingEndOf(e *kernel.End) (end, bool) {
	l := w.channels[e.Link()]
	if l == nil {
		return nil, false
	}
	x := l.ends[0]
	if e == e.Link().Ends[1] {
		x = l.ends[1]
	}
	if x.begun = true; l.ends[0].begun && l.ends[1].begun {
		for _, s := range w.strands {
			s.lasts = s.lasts || s.l == e.Link()
		}
	}
	if x.me == 0 {
		x.start(e)
	} else {
		x.update()
		w.await(e)
	}
	return x, true
}
