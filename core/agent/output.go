package agent

import "fmt"

// maxBatch is the most slices that Output returns: enough to make a system call cheap per
// byte, and far below the kernel's limit of 1024.
const maxBatch = 64

// HasOutput reports whether bytes wait for the link.
func (a *Agent) HasOutput(l LinkID) bool {
	p := a.lookup(l)
	return p != nil && p.hasOutput()
}

// Output returns the bytes to send on the link next, some or all of them; it is empty if
// there are none. The bytes stay valid until Sent or Closed, the slice of slices until the
// next Output of this link.
//
// IMPI ch.3, Packet Protocol: PROTOACKs go ahead of queued data. They are put between two
// runs, so that at most one chunk or packet is before them. So is what nodes ask each other.
func (a *Agent) Output(l LinkID) [][]byte {
	p := a.lookup(l)
	if p == nil {
		return nil
	}
	n := p.out.n + p.urgent.n
	if p.inquiry != nil {
		n += len(p.inquiry.out)
	}
	if n > cap(p.batch) && cap(p.batch) < maxBatch {
		p.batch = make([][]byte, 0, batchFor(n))
	}
	p.out.lent, p.urgent.lent = 0, 0
	k := p.out.partial()
	b := p.batch[:0]
	if p.inquiry != nil {
		b = p.inquiry.begun(b)
	}
	b = p.out.lend(b, 0, k)
	b = p.urgent.lend(b, 0, p.urgent.n)
	if p.inquiry != nil {
		b = p.inquiry.lend(b)
	}
	p.batch = p.out.lend(b, k, p.out.n)
	return p.batch
}

// batchFor is the capacity of a batch for n slices, at most maxBatch. It is small for a
// link with little traffic, since a large host has many of those.
func batchFor(n int) int {
	size := 2
	for size < min(n, maxBatch) {
		size *= 2
	}
	return size
}

// Sent records that the first n bytes of the result of Output have been sent. It panics if Output
// returned fewer.
func (a *Agent) Sent(l LinkID, n int) {
	p := a.lookup(l)
	if p == nil || n < 0 {
		panic(fmt.Sprintf("agent: Sent(%d, %d)", l, n))
	}
	lentOut, lentUrgent := p.out.lent, p.urgent.lent
	p.out.lent, p.urgent.lent = 0, 0
	others := 0
	if p.inquiry != nil {
		n, others = p.inquiry.sentBegun(n)
	}
	n, gone := p.out.sent(&a.pool, n, min(p.out.partial(), lentOut))
	n, _ = p.urgent.sent(&a.pool, n, lentUrgent)
	if others > 0 {
		n = p.inquiry.sent(n, others)
	}
	n, _ = p.out.sent(&a.pool, n, lentOut-gone)
	if n > 0 {
		panic(fmt.Sprintf("agent: Sent: %d bytes more than Output gave", n))
	}
	a.channelDone(p)
}

// GrownQueues returns the links whose queue has grown since the last call. The slice stays
// valid until the next call of GrownQueues.
func (a *Agent) GrownQueues() []LinkID {
	a.given, a.touched = a.touched, a.given[:0]
	for _, l := range a.given {
		if p := a.lookup(l); p != nil {
			p.touched = false
		}
	}
	return a.given
}

func (a *Agent) touch(p *endpoint) {
	if p.link == NoLink && a.onDemand(p) && !p.meant && a.mean(p) {
		a.emit(Event{Kind: HostWanted, Peer: p.peer, Link: NoLink})
	}
	if !p.touched && p.link != NoLink {
		p.touched = true
		a.touched = append(a.touched, p.link)
	}
}
