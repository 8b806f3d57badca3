package mpi

import "fmt"

// operation is what a request is about that is no message: a collective
// operation, a generalized request, a communicator in the making. Its process is
// locked at all calls; who runs code of the program unlocks it meanwhile.
//
// A request whose operation waits for other things than messages is woken up by
// process.rouse.
type operation interface {
	// generation changes when the operation is finished, so that copies of the
	// request can tell.
	generation() uint32
	// done carries the operation on as far as it goes without waiting, and tells
	// whether it is over.
	done() bool
	// status is what finish would give, of an operation that is over.
	status() (Status, error)
	// finish takes the outcome of an operation that is over, or that cannot be
	// because the job is, and ends it.
	finish() (Status, error)
	// cancel takes it back if that is possible, or is an error.
	cancel() error
	// free lets it go on unobserved, or is an error. The request is null afterwards.
	free() error
}

// begun makes the request of an operation that the function fn has begun on c.
// c is nil if it is of no communicator.
func (p *process) begun(c *Comm, fn string, op operation) Request {
	if c == nil {
		c = p.noted()
	}
	return Request{c: c, extra: &extra{op: op, fn: fn}, standing: standing{gen: op.generation(), state: active}}
}

// steady is the part of an operation that nothing can be done about but to wait.
type steady struct{ gen uint32 }

func (s *steady) generation() uint32 { return s.gen }

func (s *steady) cancel() error {
	return fmt.Errorf("%w: it is no send, receive or generalized request, which can be cancelled", ErrRequest)
}

func (s *steady) free() error {
	return fmt.Errorf("%w: an operation that is no message cannot be left alone before it is complete", ErrRequest)
}
