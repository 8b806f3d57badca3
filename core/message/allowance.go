package message

import (
	"math"
	"math/bits"

	"github.com/openimpi/impi/core/wire"
)

// What a message takes in the memory of a receiver that nobody has asked for it, as both
// sides count it: an envelope, and its first packet's data, rounded up as memory is.
const (
	envelopeCost = 320
	fastBoxCost  = envelopeCost + 128 // whatever the fast-box message carries, so that counting fast-box messages is enough
)

// headData is most data in the first packet of a message that its sender has no
// allowance for. It is not 0: a continuation would look like a message of its own.
const headData = 1 << minClass

// leastAllowance is what each proc may always have at a peer. It is so much that messages
// which are received as they come never use it up before the peer says so: the
// peer counts fast-box messages that it has taken every 64, and speaks after a quarter.
const leastAllowance = 64 << 10

// Least is what Config.UnexpectedOf says of a proc that knows of allowances, and whose limit
// is not known.
const Least = -1

// saysMore is pk_srqid of a PROTOACK that acknowledges nothing: it only brings an allowance.
const saysMore = 1

// cost is what a first packet of n data bytes counts.
func cost(n int64) int64 {
	if n == 0 {
		return envelopeCost
	}
	return envelopeCost + 1<<max(minClass, bits.Len64(uint64(n-1)))
}

// Allowance is how much each of so many peers may have at a proc that keeps limit bytes of
// messages nobody has asked for, before that proc has said anything.
func Allowance(limit int64, peers int) int64 {
	return max(leastAllowance, limit/2/int64(max(1, peers)))
}

// allowance is what a proc knows of how much one peer keeps of its messages, and how much it
// keeps itself of the peer's. Both count from the beginning, and numbers only grow.
//
// A sender charges each first packet, and each fast-box message. While what it has charged is
// at most what it may, all of a short message leaves at once. Beyond that a message begins
// with a DATASYNC of at most headData bytes, and the rest waits for the SYNCACK, as with every
// long message: so messages keep their order, and a receiver gets the one that it wants
// whatever lies before it.
type allowance struct {
	on bool // both sides know of allowances

	// As a sender.
	spent int64 // by packets
	may   int64 // by packets and fast-box messages

	// As a receiver.
	came  int64 // by packets
	held  int64 // of packets and fast-box messages: for messages that are still here
	said  int64 // what the peer may, as it was told
	next  int64 // after so much was used up it is told again
	base  int64 // what it may have here at any time
	extra int64 // of the pool, on top of that
	due   bool  // it is to be told
}

// pool is what peers are given beyond their base.
type pool struct{ size, given int64 }

// allow sets up what p and this proc allow each other.
func (e *procs) allow(p *peer) {
	theirs, mine := e.allowances(p)
	if theirs <= 0 || mine <= 0 || e.cfg.Dialect == wire.Draft {
		return
	}
	p.allowance = allowance{on: true, may: theirs, said: mine, base: mine, next: mine / 4}
}

// allowances gives what this proc has at p to begin with, and p here.
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
	case limit == Least:
		return leastAllowance, leastAllowance
	case limit <= 0:
		return 0, 0
	}
	n := e.directory.Len() - 1
	return Allowance(limit, n), Allowance(e.cfg.Unexpected, n)
}

// charged is what this proc has used of what it may have at p.
func (p *peer) charged() int64 {
	if p.fastBoxes == nil {
		return p.spent
	}
	return p.spent + int64(p.fastBoxes.boxes.FastBoxesSent())*fastBoxCost
}

// affords tells whether the first packet of a message to p may carry n bytes.
func (p *peer) affords(n int64) bool {
	return !p.on || p.charged()+cost(n) <= p.may
}

// charge counts a first packet of n bytes to p.
func (p *peer) charge(n int64) {
	if p.on {
		p.spent += cost(n)
		p.limitFastBoxes()
	}
}

// limitFastBoxes says how many fast-box messages may go to p as things stand.
func (p *peer) limitFastBoxes() {
	if p.on && p.fastBoxes != nil {
		boxes := p.fastBoxes.boxes
		boxes.LimitFastBoxes(boxes.FastBoxesSent() + uint64(max(0, p.may-p.charged())/fastBoxCost))
	}
}

// allowed takes what p says that this proc may. It never takes back: packets can pass each other.
func (p *peer) allowed(v uint64) {
	if p.on && v <= math.MaxInt64 && int64(v) > p.may {
		p.may = int64(v)
		p.limitFastBoxes()
	}
}

// Needy tells whether a message waits to leave by l that has no allowance, as far as is known:
// what has come by l and was not read may bring some. It asks once for each message.
func (e *linkTable) Needy(l LinkID) bool {
	s := e.linkOrNil(l)
	if s == nil || !s.needy {
		return false
	}
	s.needy = false
	return true
}

// arrives counts a first packet of p, of n bytes.
func (p *peer) arrives(n int64) {
	if p.on {
		p.came += cost(n)
	}
}

// keep counts a message of p that stays here.
func (m *Message) keep(n int64) {
	if m.peer.on {
		m.cost = n
		m.peer.held += n
	}
}

// used is how much of what p sent was received, or needs no memory any more.
func (p *peer) used() int64 {
	if p.fastBoxes == nil {
		return p.came - p.held
	}
	return p.came + int64(p.fastBoxes.boxes.FastBoxesTaken())*fastBoxCost - p.held
}

// review has p told that it may have more here, if it has used up much of what it could.
func (e *linkTable) review(p *peer) {
	if p.on && !p.due && p.down == nil && p.used() >= p.next {
		p.due = true
		e.wake(p)
	}
}

// Review is for a driver that has let others take fast-box messages, and calls it every so
// many fast-box messages.
func (e *linkTable) Review() {
	for _, s := range e.links {
		if s != nil && s.boxes != nil {
			e.review(s.peer)
		}
	}
}

// grant gives what p is told that it may now have: what it has used, its base, and on top half
// of what others leave it of the pool. What it may have and has not used is never more than
// base and extra, and the extras of all are never more than the pool.
func (e *procs) grant(p *peer) uint64 {
	if !p.on {
		return 0
	}
	used := p.used()
	p.due = false
	unused := max(0, p.said-used-p.base)
	e.pool.given -= p.extra
	p.extra = max(unused, (e.pool.size-e.pool.given)/2)
	e.pool.given += p.extra
	p.said = max(p.said, used+p.base+p.extra)
	p.next = max(used+1, p.said-(p.base+p.extra)/4*3)
	return uint64(p.said)
}

// giveBack takes p, which is nobody any more, out of the pool.
func (e *procs) giveBack(p *peer) {
	e.pool.given -= p.extra
	p.extra = 0
}

// Kept is how many bytes messages of others take here that nobody has asked for, as allowances
// count them.
func (e *procs) Kept() (n int64) {
	for _, p := range e.peers.made {
		n += p.held
	}
	return n
}
