// Package link has the abstract link that everything in core is written
// against: a reliable, ordered byte stream between two endpoints. The pair in memory of
// linktest is the reference for what the words below mean; the suite in
// transports/transporttest holds every other implementation to them.
package link

import "errors"

// ErrClosed is what Send and Recv report after the link's own Close, and Send
// after the link's own CloseSend.
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
	// final: n is 0 and every later Send reports the same (ErrClosed once Close was
	// called). A peer that is gone is ErrBroken, at the latest when the bytes that
	// the link had room for are used up.
	Send(batch [][]byte) (n int, err error)

	// Recv puts the next bytes into batch, in order, and says how many. 0 and nil
	// means that nothing is there. io.EOF means that the peer has finished
	// sending and all of it was delivered; bytes that were lost on the way make it
	// ErrBroken instead. Any error is final and comes with n = 0. A batch without
	// room gets 0 and nil at the end of the stream too.
	Recv(batch [][]byte) (n int, err error)

	// Handle is a descriptor that poll(2) reports readable when Recv may make
	// progress and writable when Send may, or NoHandle for a link that can only
	// be polled by calling it. An end of stream or an error counts as progress.
	// The link owns the descriptor, which is valid until Close; Close does not
	// wake who sleeps on it. A link has the same handle all its life.
	Handle() int

	// Arm says that the caller is about to sleep on Handle until one of want
	// holds. True means do not sleep: it holds already. Links whose readiness is
	// kept by the kernel answer false. It must be called again for each sleep, by
	// the goroutine that will call Recv (for Readable) or Send (for Writable).
	Arm(want Interest) bool

	// Limits returns how the link likes to be used. They do not change.
	Limits() Limits

	// CloseSend ends this side's bytes: the peer's Recv reports io.EOF after the
	// last of them. Receiving goes on. Again, it does nothing; after Close it
	// reports ErrClosed. It must not overlap with Send.
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

	// Memory tells that Recv is as cheap as a look into memory, and that Handle
	// tells of nothing but to who has called Arm: who polls should call Recv.
	Memory bool
}
