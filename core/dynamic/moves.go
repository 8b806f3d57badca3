package dynamic

import (
	"math"
	"time"
)

// OrderedEpoch stands for any connection in a Hello that says that a link is Lost: whatever
// connection the link has is given up for another one, by somebody's order.
const OrderedEpoch = math.MaxUint64

// moveTime is how long a link that leaves a transport is not resumed by it.
const moveTime = 5 * time.Second

// Leave says whether a link can leave a transport whose plugin is drained.
type Leave uint8

// The cases.
const (
	Fixed   Leave = iota // no: the link is not resumable
	Waiting              // no: there is no other candidate, or none that works
	Moving               // yes, and it has not yet
)

// Moves are the links of a node's procs that leave a transport whose plugin is drained: each is
// broken, once, so that it is resumed by another transport. If that fails, it is resumed as before.
// The zero value is ready.
type Moves struct{ told map[*ResumableLink]*move }

// move is a link that was broken so that it leaves a transport. Its other end's node may order that
// after this one has, which does not count as a second order of this one.
type move struct {
	resumes int // how often it had been resumed by then
	at      time.Time
	own     bool // this node has ordered it
	before  int  // how often it had been resumed by then
}

// Order decides about a link that is made by the drained transport; s is nil if it is not
// resumable, and elsewhere reports whether it has another candidate. With begin the link is to be
// broken now: here if this node dials it, otherwise by the other end's node, which is asked.
func (m *Moves) Order(now time.Time, s *ResumableLink, elsewhere bool) (x Leave, begin bool) {
	switch {
	case s == nil:
		return Fixed, false
	case !elsewhere:
		return Waiting, false
	}
	switch t := m.told[s]; {
	case t == nil || !t.own:
		m.tell(now, s)
		m.told[s].own, m.told[s].before = true, s.Resumes
		return Moving, true
	case s.Resumes > t.before: // the other candidate does not work
		return Waiting, false
	}
	return Moving, false
}

// Breaker is who breaks a link that Order has said to break.
type Breaker uint8

// The cases.
const (
	BreakHere Breaker = iota // this node, which dials it
	AskPeer                  // the other end's node: call Asked when it has answered, or does not
	Nobody                   // the link is lost already, and made again by another transport
)

// Break says who breaks a link, as Order wants: if the end that does not dial broke it, the other
// end's node would take it for lost.
func (m *Moves) Break(s *ResumableLink) Breaker {
	switch {
	case s.Dialled:
		return BreakHere
	case s.Busy:
		return Nobody
	}
	_ = s.begin(OrderedEpoch)
	return AskPeer
}

// Asked records whether the other end's node breaks the link. If it does not, the link is broken
// here all the same, unless it has been resumed meanwhile, or the transport is used again.
func (m *Moves) Asked(s *ResumableLink, heard bool) Breaker {
	s.Busy = false
	if heard || !m.Moves(s) {
		return Nobody
	}
	return BreakHere
}

// Ordered records that the other end's node has ordered that a link leaves its transport.
func (m *Moves) Ordered(now time.Time, s *ResumableLink) { m.tell(now, s) }

func (m *Moves) tell(now time.Time, s *ResumableLink) {
	if m.told == nil {
		m.told = make(map[*ResumableLink]*move)
	}
	if m.told[s] == nil {
		m.told[s] = &move{}
	}
	m.told[s].resumes, m.told[s].at = s.Resumes, now
}

// Moves reports whether a link was broken to leave its transport, and has not been resumed since.
func (m *Moves) Moves(s *ResumableLink) bool {
	t := m.told[s]
	return t != nil && s.Resumes == t.resumes
}

// Refuses reports whether a connection for a link by the transport that it leaves is refused, so
// that the other end's node dials by another one. limit is the longest time that the link may be
// without a connection.
func (m *Moves) Refuses(now time.Time, s *ResumableLink, limit time.Duration) bool {
	return m.Moves(s) && now.Sub(m.told[s].at) < min(moveTime, limit/2)
}

// Forget forgets all links, as the transport is used again.
func (m *Moves) Forget() { clear(m.told) }
