// Package link has the abstract link that everything in core uses: a reliable, ordered byte
// stream between two endpoints. The in-memory pair in linktest is the reference for the
// contract below; the suite in plugins/sdk/transports/transporttest checks every other
// implementation.
package link

import "errors"

// ErrClosed is returned by Send and Recv after the link's own Close, and by Send after the
// link's own CloseSend.
var ErrClosed = errors.New("link is closed")

// ErrBroken is wrapped by the error of a link that has failed: the peer died, the network
// cut it, a checksum was wrong. Every later call returns the same error.
var ErrBroken = errors.New("link is broken")

// Link moves bytes between two endpoints in both directions, reliably and in order.
//
// No method blocks. One goroutine may call Send while another calls Recv; two calls of the
// same method must not overlap. Any goroutine may call Close at any time, more than once.
type Link interface {
	// Send takes the first n bytes of batch, as one sequence, and keeps no slice of it. If
	// n is less than all bytes, which may be 0, the link is full at present. An error is
	// final: n is 0 and every later Send returns the same error (ErrClosed after Close). If
	// the peer has gone, Send returns ErrBroken, at the latest when the link has no more
	// room.
	Send(batch [][]byte) (n int, err error)

	// Recv copies the next bytes into batch, in order, and returns how many. 0 and nil
	// means that nothing has come. io.EOF means that the peer has ended its stream and all
	// of it was delivered; if bytes were lost on the way it is ErrBroken instead. An error
	// is final and comes with n = 0. A batch without room gets 0 and nil, even at the end
	// of the stream.
	Recv(batch [][]byte) (n int, err error)

	// Handle returns a descriptor that poll(2) reports as readable when Recv may make
	// progress and as writable when Send may, or NoHandle for a link that can only be
	// polled by calling it. An end of stream or an error counts as progress. The link owns
	// the descriptor, which is valid until Close; Close does not wake goroutines that sleep
	// on it. The handle of a link never changes.
	Handle() int

	// Arm announces that the caller is about to sleep on Handle until one of the interests in want
	// holds. If it returns true the caller must not sleep: one holds already. Links whose readiness
	// the kernel knows return false. Arm must be called again for each sleep, by the goroutine that
	// will call Recv (for Readable) or Send (for Writable).
	Arm(want Interest) bool

	// Limits returns how the link is best used. It never changes.
	Limits() Limits

	// CloseSend ends this side's stream: the peer's Recv returns io.EOF after the last
	// byte. Receiving continues. A second call does nothing; after Close it returns
	// ErrClosed. It must not overlap with Send.
	CloseSend() error

	// Close releases the link. Bytes that the peer has not received may be lost. It always
	// returns nil.
	Close() error
}

// NoHandle is the Handle of a link that has no descriptor: nothing can sleep until it is ready, so
// that it has to be polled.
const NoHandle = -1

// Interest is a set of conditions that a sleeper waits for.
type Interest uint8

// The conditions to wait for.
const (
	Readable Interest = 1 << iota
	Writable
)

// Limits are a link's preferences, in bytes. Zero means no preference.
type Limits struct {
	Batch  int // most slices that one Send or Recv uses; more are allowed
	Stream int // bytes that the link takes before the peer receives any

	// Memory is set if Recv is as cheap as reading memory, and Handle reports events only after
	// Arm: a polling user should call Recv.
	Memory bool
}
