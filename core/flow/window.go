// Package flow counts packets between pairs of procs: the ackmark and hiwater windows of
// IMPI (IMPI ch.3, Packet Protocol). No other package changes these counters.
//
// The two directions of a pair are independent, so each proc keeps one Window for each
// peer: how many packets it may still send there, and how many it has received from there
// and not acknowledged.
package flow

import (
	"errors"
	"fmt"
	"math"
)

// ErrLimits is wrapped by the error for limits that no job can have.
var ErrLimits = errors.New("flow: impossible window")

// Limits are two constants of the job, in packets: the smallest that any host proposed.
type Limits struct {
	AckMark uint32 // number of packets that a PROTOACK stands for, exactly
	HiWater uint32 // maximum packets on their way to one proc
}

// Check returns an error for limits that no job can have.
// IMPI ch.3, Message Passing Protocols: 1 <= ackmark <= hiwater.
func (l Limits) Check() error {
	switch {
	case l.AckMark < 1:
		return fmt.Errorf("%w: ackmark %d, must be at least 1", ErrLimits, l.AckMark)
	case l.AckMark > l.HiWater:
		return fmt.Errorf("%w: ackmark %d is more than hiwater %d: the sender would stop before the receiver acknowledges",
			ErrLimits, l.AckMark, l.HiWater)
	}
	return nil
}

// Window is one proc's view of its traffic with one peer. The zero Window allows nothing;
// use New. It has no lock: its owner serializes the calls.
type Window struct {
	limits Limits
	sent   int64 // counted packets sent, minus those acknowledged; may be negative
	rcvd   int64 // counted packets received since our last PROTOACK
}

// New returns a window in which nothing has been sent. The limits must have passed Check.
func New(l Limits) Window { return Window{limits: l} }

// Widen lets at least hiwater packets be on their way to the peer. PROTOACKs stand for as many
// packets as before, and the peer need not know of it.
func (w *Window) Widen(hiwater uint32) { w.limits.HiWater = max(w.limits.HiWater, hiwater) }

// Open reports whether one more counted packet may be sent.
func (w *Window) Open() bool { return w.sent < int64(w.limits.HiWater) }

// Sent counts a packet that is sent. It must be called only for packet types that are counted, and
// only while the window is open.
func (w *Window) Sent() { w.sent++ }

// Acked handles a PROTOACK of the peer. IMPI ch.3, Packet Protocol: it carries no count and
// stands for ackmark packets. If a peer acknowledges more than was sent, the counter
// becomes negative, which is harmless.
func (w *Window) Acked() {
	if w.sent > math.MinInt64/2 {
		w.sent -= int64(w.limits.AckMark)
	}
}

// Received counts a packet that arrived and reports whether a PROTOACK has to be sent now.
func (w *Window) Received() (ack bool) {
	if w.rcvd++; w.rcvd < int64(w.limits.AckMark) {
		return false
	}
	w.rcvd -= int64(w.limits.AckMark)
	return true
}

// Unacknowledged returns the number of packets that are on their way as far as this side knows. It
// is negative if the peer acknowledged more than was sent.
func (w *Window) Unacknowledged() int64 { return w.sent }

// ReceivedSinceAck returns the number of packets received since the last PROTOACK was sent.
func (w *Window) ReceivedSinceAck() int64 { return w.rcvd }
