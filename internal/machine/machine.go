// Package machine is what a proc needs of the computer on which it runs: a place to sleep
// until a link or another goroutine has something, timers, and an exit. This computer is
// one such machine. The simulator has others, in which time is a number and only the seed
// decides what happens.
package machine

import (
	"time"

	"github.com/openimpi/impi/internal/poll"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// Machine is the computer as a proc sees it. docs/simulator.md describes the simulator's.
type Machine interface {
	// NewSet makes the set in which the proc sleeps.
	NewSet() (Set, error)

	// AfterFunc calls f once after d. f takes the proc's lock, so it is not called during
	// an MPI call of the proc, except while that call sleeps in Set.Wait.
	AfterFunc(d time.Duration, f func()) Timer

	// Now returns the time, for measuring intervals.
	Now() time.Time

	// Exit ends the proc at once and does not return. why is said on standard error; empty: somebody
	// else has said it.
	Exit(code int, why string)
}

// Random is a Machine with random bytes of its own, for keys. On other machines the proc
// uses crypto/rand.
type Random interface {
	// Random fills b.
	Random(b []byte)
}

// Memory is a Machine whose procs are processes of one kernel, which can map and copy each other's
// memory. On other machines one-sided operations are messages.
type Memory interface {
	// SharesMemory marks such a Machine. It is not called.
	SharesMemory()
}

// Watcher is a Machine that observes the bytes of resumable links, whatever runs below
// them.
type Watcher interface {
	// Watch returns the link to use instead of l, the proc's end of the link with that
	// session.
	Watch(l link.Link, session []byte) link.Link
}

// Bell wakes one proc of a host for the others, which share memory with it.
type Bell interface {
	// FD returns the handle for the proc's Set, which is readable from Wake until Clear.
	FD() int
	// Wake makes the handle readable. Any proc may call it, any number of times.
	Wake()
	// Clear makes it unreadable again. Only the proc itself calls it.
	Clear()
}

// Set is a set of links to wait for. One goroutine at a time may call Wait; the other
// methods may be called meanwhile.
type Set interface {
	// Add adds a link's handle; its events carry key, which must not be WakeKey.
	Add(handle int, key uint32, want link.Interest) error
	// Modify changes what is waited for.
	Modify(handle int, key uint32, want link.Interest) error
	// Remove removes a handle, which must still be open.
	Remove(handle int) error
	// Wait returns what is ready, waiting for up to timeout; a negative one means without
	// limit. The slice is valid until the next Wait. Wait may return early, with no events.
	Wait(timeout time.Duration) ([]poll.Event, error)
	// Wake gives the present or next Wait an event with WakeKey. Any goroutine may call it,
	// any number of times.
	Wake()
	// Clear removes the event of Wake, which then has to be called again.
	Clear()
	// Close releases the set, but not the links in it.
	Close() error
}

// WakeKey is the key of the event that Wake makes. No handle may have it.
const WakeKey = ^uint32(0)

// Timer is a pending call, as time.AfterFunc makes it.
type Timer interface {
	// Reset makes the call happen d from now, whether or not it has happened already.
	Reset(d time.Duration) bool
	// Stop prevents the call, and reports whether it was pending.
	Stop() bool
}

// Node is the proc's connection to its node, for sending.
type Node interface {
	// Send queues one message. It does not wait for its effect.
	Send(m wireup.Message) error
}
