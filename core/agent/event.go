package agent

import (
	"errors"
	"fmt"

	"github.com/openimpi/impi/core/wire"
)

// EventKind is the kind of an Event.
type EventKind uint8

// The events of an agent.
const (
	// HostFinished: the host sent FINI or, in the dialect that has no FINI, ended its
	// stream. It sends no more messages.
	HostFinished EventKind = iota + 1

	// ChannelDone: both FINIs have passed (IMPI ch.3, Finalization) and nothing is left to send. In
	// the draft, which has no FINI, only the latter holds: the peer may still send. The driver ends
	// its sending side (CloseSend), reads until the peer's end or for a short time, closes the link
	// and calls Closed. If it closed the link at once, the kernel could discard bytes that the peer
	// has not read, our FINI included.
	ChannelDone

	// HostDied: the channel was lost before the peer's FINI, or the peer broke the
	// protocol; Err says how. The loss of a channel after FINI is not reported: the host's
	// procs have passed the barrier of Finalize (IMPI ch.3, Finalization), so no message is
	// lost.
	HostDied

	// ProcLost: a local proc's link ended before ProcDone, or the proc broke the
	// protocol. Err says how.
	ProcLost

	// Finished: every local proc is done and every channel was closed in order.
	Finished

	// HostWanted: a packet waits for a host whose channel is made on demand. The driver makes the
	// channel and calls AttachHost, or else NoChannel.
	HostWanted
	// RanksLost: the host has reported by PkLost which procs are lost (Lost), and the job
	// continues.
	RanksLost
	// Asked: the node at the other end of a channel asks something: Number and Data. Reply answers.
	Asked
	// Answered: the answer to question Number is Data. If that is empty there will be none.
	Answered
)

var eventNames = [...]string{"none", "host finished", "channel done", "host died", "proc lost", "finished", "host wanted", "ranks lost", "asked", "answered"}

// String returns the name of the kind.
func (k EventKind) String() string {
	if int(k) < len(eventNames) {
		return eventNames[k]
	}
	return fmt.Sprintf("event %d", uint8(k))
}

// Event is a report to the driver.
type Event struct {
	Kind EventKind
	Peer Peer   // host or proc of the event; not for Finished
	Link LinkID // ChannelDone, HostFinished: the link; else SetNoLink
	Err  error  // HostDied, ProcLost: never nil
	Lost wire.Lost

	Number uint64 // Asked, Answered: of the question
	Data   []byte // Asked, Answered: the question or the answer
}

// String returns the event as one line.
func (e Event) String() string {
	switch {
	case e.Kind == Finished:
		return e.Kind.String()
	case errors.As(e.Err, new(*ProtocolError)): // its text names the peer
		return fmt.Sprintf("%v: %v", e.Kind, e.Err)
	case e.Err != nil:
		return fmt.Sprintf("%v: %v: %v", e.Kind, e.Peer, e.Err)
	}
	return fmt.Sprintf("%v: %v", e.Kind, e.Peer)
}

// Next returns the oldest event that it has not returned yet, and false if there is none.
func (a *Agent) Next() (Event, bool) {
	if a.eventHead == len(a.events) {
		a.events, a.eventHead = a.events[:0], 0
		return Event{}, false
	}
	e := a.events[a.eventHead]
	a.events[a.eventHead] = Event{}
	a.eventHead++
	return e, true
}

func (a *Agent) emit(e Event) { a.events = append(a.events, e) }

// Counts counts what an agent did.
type Counts struct {
	Packets   uint64 // packets passed on
	Bytes     uint64 // bytes of these packets, headers included
	Dropped   uint64 // packets to an endpoint that is gone or done, and PROTOACKs that the window has no packets for
	Discarded uint64 // bytes that were still queued for a link when it was closed
	Queued    int    // bytes that wait now
	Ends      int    // part of Queued: FINIs for channels that do not exist yet
	Memory    int    // bytes of chunks in use now
}

// Counts returns the counts up to now.
func (a *Agent) Counts() Counts {
	s := a.stats
	for _, p := range a.endpoints {
		if p != nil {
			s.Queued += p.out.bytes + p.urgent.bytes + p.inquiry.waits()
			if p.meant && p.ended && p.state == waiting && !a.silent {
				s.Ends += wire.HeaderSize
			}
		}
	}
	for i := range a.locals {
		s.Queued += a.locals[i].out.bytes + a.locals[i].urgent.bytes
	}
	s.Memory = a.pool.live * a.pool.size
	return s
}
