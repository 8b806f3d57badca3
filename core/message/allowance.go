package message

import (
	"math"
	"math/bits"

	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// The memory that an unexpected message takes at its receiver, as both sides count it: an
// envelope, and the data of the first packet, rounded up as memory is allocated.
const envelopeCost = link.EnvelopeCost

// headData is the most data in the first packet of a message for which the sender has no
// allowance. It is not 0: a packet with all of the message's bytes that follows such a first
// packet would look like a message of its own.
const headData = 1 << minClass

// leastAllowance is what each proc may always have at a peer. It is large enough that a
// sender whose short messages are received as they come never uses it up before it gets more:
// the receiver raises the allowance when a quarter is used up.
const leastAllowance = 64 << 10

// LeastAllowance is the result of Config.UnexpectedOf for a proc that supports allowances but has
// not announced its limit.
const LeastAllowance = -1

// saysMore is the pk_srqid of a PROTOACK that acknowledges no packets and only carries an
// allowance. Hosts that know nothing of allowances ignore the field (IMPI ch.3, Packet Format), and
// are never sent such a packet.
const saysMore = 1

// cost is how much a first packet with n bytes of data counts.
func cost(n int64) int64 {
	if n == 0 {
		return envelopeCost
	}
	return envelopeCost + 1<<max(minClass, bits.Len64(uint64(n-1)))
}

// Allowance returns the allowance in bytes of each of peers at a proc that keeps at most limit
// bytes of unexpected messages, before the proc has granted more.
func Allowance(limit int64, peers int) int64 {
	return max(leastAllowance, limit/2/int64(max(1, peers)))
}

// allowance is how much unexpected data one peer keeps for this proc, and this proc for the peer.
// Both are counted from the beginning of the job, and the numbers only grow.
//
// A sender charges each first packet and each fast-box message. As long as the total is at most
// what it may have, all of a short message leaves at once. Beyond that a message begins with a
// DATASYNC of at most headData bytes, and the rest waits for the SYNCACK, as with every long
// message. So messages keep their order, and a receiver gets the message that it wants, whatever
// unexpected messages came before it: a program that MPI promises progress (MPI-4.1, 3.5) does not
// hang because this memory is full.
type allowance struct {
	on bool // both sides support allowances

	// As a sender.
	spent int64 // bytes charged for the first packets sent so far
	limit int64 // bytes that may be charged in total, fast-box messages included

	// As a receiver.
	received int64 // bytes charged for the first packets that came
	held     int64 // part of came, and of fast-box messages, that is kept because no receive has matched it
	granted  int64 // total that the peer may be charged, as sent to it last
	next     int64 // total use at which the peer gets a new allowance
	base     int64 // bytes that this proc always keeps for the peer
	extra    int64 // further bytes for the peer, taken from the pool
	due      bool  // the new allowance must still be sent to the peer
}

// pool is the memory that is given to peers beyond their base.
type pool struct{ size, given int64 }

// allow sets the initial allowances of p here and of this proc at p.
func (e *procs) allow(p *peer) {
	theirs, mine := e.allowances(p)
	if theirs <= 0 || mine <= 0 || e.cfg.Dialect == wire.Draft {
		return
	}
	p.allowance = allowance{on: true, limit: theirs, granted: mine, base: mine, next: mine / 4}
}

// allowances returns what this proc may have at p to begin with, and what p may have here.
func (e *procs) allowances(p *peer) (theirs, mine int64) {
	if e.cfg.Unexpected <= 0 || p.index == e.cfg.Self {
		return 0, 0
	}
	if p.as != &e.own {
		if !p.as.allows {
			return 0, 0
		}
		return leastAllowance, leastAllowance
	}
	if e.cfg.UnexpectedOf == nil {
		return 0, 0
	}
	limit := e.cfg.UnexpectedOf(p.index)
	switch {
	case limit == LeastAllowance:
		return leastAllowance, leastAllowance
	case limit <= 0:
		return 0, 0
	}
	n := e.directory.Len() - 1
	return Allowance(limit, n), Allowance(e.cfg.Unexpected, n)
}

// charged returns how many bytes of its allowance at p this proc has used.
func (p *peer) charged() int64 {
	if p.fastBoxes == nil {
		return p.spent
	}
	return p.spent + int64(p.fastBoxes.boxes.FastBoxesCharged())
}

// affords reports whether the first packet of a message to p may carry n bytes.
func (p *peer) affords(n int64) bool {
	return !p.on || p.charged()+cost(n) <= p.limit
}

func (p *peer) charge(n int64) {
	if p.on {
		p.spent += cost(n)
		p.limitFastBoxes()
	}
}

// limitFastBoxes limits the fast-box messages to p to what the allowance has room for.
func (p *peer) limitFastBoxes() {
	if p.on && p.fastBoxes != nil {
		p.fastBoxes.boxes.LimitFastBoxes(uint64(max(0, p.limit-p.spent)))
	}
}

// reviewFastBoxes says after which fast-box messages from p it is told a new allowance.
func (p *peer) reviewFastBoxes() {
	if p.on && p.fastBoxes != nil {
		p.fastBoxes.boxes.ReviewFastBoxes(uint64(max(0, p.next-p.received+p.held)))
	}
}

// allowed handles an allowance that p has sent. It is never lowered: packets may overtake
// each other.
func (p *peer) allowed(v uint64) {
	if p.on && v <= math.MaxInt64 && int64(v) > p.limit {
		p.limit = int64(v)
		p.limitFastBoxes()
	}
}

// NeedsAllowance reports whether a message that is to leave by l waits for an allowance. If so the
// caller should read what has come by l, which may bring one. It returns true once for each
// message.
func (e *linkTable) NeedsAllowance(l LinkID) bool {
	s := e.linkOrNil(l)
	if s == nil || !s.wantsAllowance {
		return false
	}
	s.wantsAllowance = false
	return true
}

// arrives counts a first packet from p with n bytes of data.
func (p *peer) arrives(n int64) {
	if p.on {
		p.received += cost(n)
	}
}

// keep counts a message from p that is kept until it is received.
func (m *Message) keep(n int64) {
	if m.peer.on {
		m.cost = n
		m.peer.held += n
	}
}

// used returns how much of what p has sent was received, or needs no memory any more.
func (p *peer) used() int64 {
	if p.fastBoxes == nil {
		return p.received - p.held
	}
	return p.received + int64(p.fastBoxes.boxes.FastBoxesTaken()) - p.held
}

// review has a new allowance sent to p if p has used up enough of the last one.
func (e *linkTable) review(p *peer) {
	if p.on && !p.due && p.down == nil && p.used() >= p.next {
		p.due = true
		e.wake(p)
	}
}

// RaiseAllowances raises the allowances of peers that have used up enough of theirs by fast-box
// messages. A driver calls it after other code, such as C code, has taken fast-box messages.
func (e *linkTable) RaiseAllowances() {
	for _, s := range e.links {
		if s != nil && s.boxes != nil {
			e.review(s.peer)
			s.peer.reviewFastBoxes()
		}
	}
}

// grant returns the new allowance that p is told: what it has used, its base, and half of
// what the other peers leave in the pool. What a peer may have and has not used is never
// more than its base and extra, and the extras of all peers are never more than the pool.
func (e *procs) grant(p *peer) uint64 {
	if !p.on {
		return 0
	}
	used := p.used()
	p.due = false
	unused := max(0, p.granted-used-p.base)
	e.pool.given -= p.extra
	p.extra = max(unused, (e.pool.size-e.pool.given)/2)
	e.pool.given += p.extra
	p.granted = max(p.granted, used+p.base+p.extra)
	p.next = max(used+1, p.granted-(p.base+p.extra)/4*3)
	p.reviewFastBoxes()
	return uint64(p.granted)
}

func (e *procs) giveBack(p *peer) {
	e.pool.given -= p.extra
	p.extra = 0
}
