package script

import "slices"

type flight struct {
	m                Message
	sending, posting bool // begun
	sent, received   bool
	earlier          []*flight // messages sent before this one to the same receives
	queue            []*flight // messages received before this one
	burst            *burst    // the burst that its receive from any source belongs to
	known            bool      // the sender knows that the receive has begun
	cancelled        *Side     // the side that will be cancelled
	order            int       // position of the receive in the burst
}

// burst is a set of messages to receives from any source, each of which may get any of them.
type burst struct {
	flights      []*flight
	sends, recvs int // begun
}

// matchKey is what messages have in common that are received in the order of sending.
type matchKey struct {
	from, to int
	comm     string
	tag      int
}

// posted reports whether every receive has begun that may be needed for the message to leave.
func (f *flight) posted() bool {
	if f.burst != nil {
		return f.burst.recvs == len(f.burst.flights)
	}
	return f.posting
}

func (g *generator) add(m Message) *flight {
	m.ID = len(g.all) + 1
	f := &flight{m: m}
	k := matchKey{m.From, m.To, m.Comm, m.Tag}
	if m.AnyTag {
		k.tag = anyTag
	}
	f.earlier = g.byMatch[k]
	if m.AnySource {
		f.earlier = nil
	} else {
		g.byMatch[k] = append(g.byMatch[k], f)
	}
	f.queue = f.earlier
	if m.Mode == Buffered {
		g.memory[m.From] -= m.buffered()
		g.buffered[m.From] = append(g.buffered[m.From], f)
	}
	g.all, g.open = append(g.all, f), append(g.open, f)
	return f
}

func (g *generator) mode(m *Message) Mode {
	if g.memory[m.From] >= m.buffered() && g.OneIn(2) {
		return Buffered
	}
	return Mode(g.IntN(2))
}

func (f *flight) maySend() bool {
	if f.m.Mode == Ready && !f.known || f.sending {
		return false
	}
	return !slices.ContainsFunc(f.earlier, func(before *flight) bool { return !before.sending || f.m.SendSlot != 0 && !before.sent })
}

func (f *flight) mayPost() bool {
	if f.posting {
		return false
	}
	if f.burst != nil && f.m.RecvSlot != 0 {
		for _, o := range f.burst.flights {
			if o.posting && !o.received {
				return false
			}
		}
	}
	return !slices.ContainsFunc(f.queue, func(o *flight) bool { return !o.posting || f.m.RecvSlot != 0 && !o.received })
}

// leaves reports whether the send can be waited for.
func (f *flight) leaves() bool { return f.m.Mode == Buffered || f.posted() }

// arrives reports whether the receive can be waited for, if it has begun.
func (f *flight) arrives() bool {
	if f.burst != nil {
		return f.burst.sends > f.order
	}
	return f.sending
}

func (g *generator) begin(f *flight, s Side, blocking bool) {
	if s == SendSide {
		f.sending, f.sent = true, blocking
	} else {
		f.posting, f.received = true, blocking
	}
	if b := f.burst; b != nil {
		if s == SendSide {
			b.sends++
		} else {
			f.order = b.recvs
			b.recvs++
		}
	}
	g.emit(Start{Req{f.m.ID, s}, blocking})
}

func (g *generator) advance(i int) {
	if i >= len(g.open) {
		return
	}
	f := g.open[i]
	switch {
	case f.cancelled != nil:
		g.advanceCancel(f)
	case g.OneIn(2) && f.mayPost():
		g.post(f)
	case f.maySend():
		g.begin(f, SendSide, f.m.SendSlot == 0 && f.leaves() && g.OneIn(2))
	case f.mayPost():
		g.post(f)
	default:
		g.wait(f)
	}
	g.sweep()
}

// post begins the receive. If it probes, the send must have begun.
func (g *generator) post(f *flight) {
	f.order = 0
	if f.burst != nil {
		f.order = f.burst.recvs
	}
	switch {
	case f.m.By != ByRecv && !f.arrives():
	case f.m.By != ByRecv:
		g.begin(f, RecvSide, true)
	default:
		g.begin(f, RecvSide, f.m.RecvSlot == 0 && f.arrives() && g.OneIn(3))
	}
}

func (g *generator) wait(f *flight) {
	ready := g.completable(-1)
	var rank int
	switch {
	case ready[Req{f.m.ID, SendSide}] != nil && (g.OneIn(2) || ready[Req{f.m.ID, RecvSide}] == nil):
		rank = f.m.From
	case ready[Req{f.m.ID, RecvSide}] != nil:
		rank = f.m.To
	default:
		return
	}
	mine := g.completable(rank)
	var reqs []Req
	for _, o := range g.open {
		for _, s := range []Side{SendSide, RecvSide} {
			q := Req{o.m.ID, s}
			if mine[q] != nil && (o == f || g.IntN(3) > 0) {
				*mine[q] = true
				reqs = append(reqs, q)
			}
		}
	}
	g.Shuffle(len(reqs), func(i, j int) { reqs[i], reqs[j] = reqs[j], reqs[i] })
	g.emit(Wait{rank, CompleteBy(g.IntN(len(howNames))), reqs})
}

// completable returns the requests of a rank, or of all for -1, that can be completed, and where to
// record that.
func (g *generator) completable(rank int) map[Req]*bool {
	found := map[Req]*bool{}
	for _, f := range g.open {
		if (rank < 0 || f.m.From == rank) && f.sending && !f.sent && f.leaves() && (f.cancelled == nil || *f.cancelled == RecvSide) {
			found[Req{f.m.ID, SendSide}] = &f.sent
		}
		if (rank < 0 || f.m.To == rank) && f.posting && !f.received && f.arrives() && f.cancelled == nil {
			found[Req{f.m.ID, RecvSide}] = &f.received
		}
	}
	return found
}

func (g *generator) sweep() {
	open := g.open[:0]
	for _, f := range g.open {
		if !f.sent || !f.received {
			open = append(open, f)
		}
	}
	g.open = open
}

// advanceCancel begins both sides of a message and cancels one. To cancel the send, the receive
// need not have begun.
func (g *generator) advanceCancel(f *flight) {
	side := *f.cancelled
	switch {
	case !f.sending && (f.posting || g.IntN(2) == 0):
		g.begin(f, SendSide, side == RecvSide && f.posting && g.OneIn(3))
	case !f.posting && f.m.By == ByRecv && (side == RecvSide || g.OneIn(2)):
		g.begin(f, RecvSide, false)
	case !f.sending || side == RecvSide && !f.posting:
	case f.received:
		g.wait(f)
	case g.OneIn(2): // other messages may begin in between
	default:
		g.emit(Cancel{Req{f.m.ID, side}})
		f.posting, f.received = true, true
		if side == SendSide {
			f.sent = true
		}
	}
}
