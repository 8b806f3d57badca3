// Package machine is what a proc needs of the computer that it runs on: a place
// to sleep until a link or another goroutine has something, timers, an end. This
// computer is one such machine. The simulator has others, in which time is a
// number and nothing happens but what its seed says.
package machine

import (
	"time"

	"github.com/openimpi/impi/core/link"
	"github.com/openimpi/impi/internal/poll"
	"github.com/openimpi/impi/internal/wireup"
)

// Machine is the computer as a proc sees it.
type Machine interface {
	// NewSet makes the set in which the proc sleeps.
	NewSet() (Set, error)

	// AfterFunc calls f once after d, not from within a call of the proc's that is
	// not in Set.Wait or outside of MPI: f takes the proc's lock.
	AfterFunc(d time.Duration, f func()) Timer

	// Now is the time, for measuring spans of it.
	Now() time.Time

	// Exit ends the proc at once and does not return.
	Exit(code int)
}

// Random is a Machine with random bytes of its own, for keys. Of others the proc asks
// crypto/rand.
type Random interface {
	// Random fills b.
	Random(b []byte)
}

// Watcher is a Machine that sees what passes by on links that resume, whatever they run over.
type Watcher interface {
	// Watch returns what is used in the place of l, the proc's end of the link with that session.
	Watch(l link.Link, session []byte) link.Link
}

// Set is a set of links to wait for. Wait is for one goroutine at a time; the
// other methods may be called meanwhile.
type Set interface {
	// Add puts a link's handle in; its events carry key, which is not WakeKey.
	Add(handle int, key uint32, want link.Interest) error
	// Modify changes what is waited for.
	Modify(handle int, key uint32, want link.Interest) error
	// Remove takes a handle out, which must still be open.
	Remove(handle int) error
	// Wait returns what is ready, waiting for up to timeout; a negative one has no
	// end. The slice is good until the next Wait. It may come back early, with
	// nothing.
	Wait(timeout time.Duration) ([]poll.Event, error)
	// Wake gives the present or next Wait an event with WakeKey. It may be called
	// by anybody, any number of times.
	Wake()
	// Clear ends that: Wake is needed again.
	Clear()
	// Close releases the set, not the links in it.
	Close() error
}

// WakeKey is the key of the event that Wake brings about.
const WakeKey = ^uint32(0)

// Timer is a call to come, as time.AfterFunc makes it.
type Timer interface {
	// Reset makes the call happen after d from now, whether it has happened or not.
	Reset(d time.Duration) bool
	// Stop prevents the call, and reports whether it was still to come.
	Stop() bool
}

// Node is the proc's connection to its node, in the direction to the node.
type Node interface {
	// Send queues one message and does not wait for its effect.
	Send(m wireup.Message) error
}
