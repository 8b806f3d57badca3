// Package link has the abstract link that everything in core is written
// against: a reliable, ordered byte stream between two endpoints.
package link

import "errors"

// ErrClosed is what Send and Recv report after the link's own Close.
var ErrClosed = errors.New("link is closed")

// ErrBroken is wrapped by the error of a link that failed under its owner: the
// peer died, the network cut it, a checksum was wrong. It stays the same for
// every later call.
var ErrBroken = errors.New("link is broken")

// Link moves bytes between two endpoints: reliable, ordered, both ways.
//
// No method blocks. One goroutine may call Send while another calls Recv;
// two calls of the same method must not overlap. Close may be called at any
// time, by anybody, more than once.
type Link interface {
	// Send takes the first n bytes of batch, read as one sequence, and does not
	// keep any slice of it. n smaller than the whole means that the link is full
	// for now; n may be anything then, 0 included. The error is nil, or it is
	// final: every later Send reports the same.
	Send(batch [][]byte) (n int, err error)

	// Recv puts the next bytes into batch, in order, and says how many. 0 and nil
	// means that nothing is there. io.EOF means that the peer has finished
	// sending and all of it was delivered. Any error is final.
	Recv(batch [][]byte) (n int, err error)

	// Handle is a descriptor that poll(2) reports readable when Recv may make
	// progress and writable when Send may, or NoHandle for a link that can only
	// be polled by calling it. The link owns the descriptor.
	Handle() int

	// Arm says that the caller is about to sleep on Handle until one of want
	// holds. True means do not sleep: it holds already. Links whose readiness is
	// kept by the kernel answer false. It must be called again for each sleep.
	Arm(want Interest) bool

	// Limits tells how the link likes to be used. They do not change.
	Limits() Limits

	// CloseSend ends this side's bytes: the peer's Recv reports io.EOF after the
	// last of them. Receiving goes on.
	CloseSend() error

	// Close releases the link. What the peer has not received may be lost. It
	// returns nil, however often it is called.
	Close() error
}

// NoHandle is the Handle of a link that cannot be waited for.
const NoHandle = -1

// Interest is what a sleeper waits for.
type Interest uint8

// The things that a link can become.
const (
	Readable Interest = 1 << iota
	Writable
)

// Limits are a link's preferences, in bytes. Zero means no preference.
type Limits struct {
	Batch  int // most slices that one Send or Recv uses; more are allowed
	Stream int // bytes that the link takes before the peer receives any
}
