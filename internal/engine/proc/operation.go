package proc

import (
	"fmt"
	"slices"

	"github.com/openimpi/impi/core/message"
)

// operation is what a request waits for if it is no message: a collective operation, a
// generalized request, a communicator that is being made. Its process is locked at all calls; an
// operation that runs code of the program unlocks it meanwhile.
//
// What waits for other things than messages is woken by Process.Rouse.
type operation interface {
	// Generation changes when the operation is finished, so that copies of the
	// request can tell.
	Generation() uint32
	// Done carries the operation on as far as it goes without waiting, and tells
	// whether it is over.
	Done() bool
	// Status is what finish would give, of an operation that is over.
	Status() (Status, error)
	// Finish takes the outcome of an operation that is over, or that cannot be
	// because the job is, and ends it.
	Finish() (Status, error)
	// Cancel takes it back if that is possible, or is an error.
	Cancel() error
	// Free lets it go on unobserved, or is an error. The request is null afterwards.
	Free() error
}

// Begun makes the request of an operation that the function fn has begun on c.
// c is nil if it is of no communicator.
func (p *Process) Begun(c *Comm, fn string, op operation) Request {
	if c == nil {
		c = p.Comms.Noted()
	}
	return Request{c: c, extra: &Extra{Op: op, Fn: fn}, standing: standing{Gen: op.Generation(), State: Active}}
}

// Steady is embedded in operations that can neither be cancelled nor freed.
type Steady struct{ Gen uint32 }

// Generation is of Operation.
func (s *Steady) Generation() uint32 { return s.Gen }

// Cancel is of Operation.
func (s *Steady) Cancel() error {
	return fmt.Errorf("%w: it is no send, receive or generalized request, which can be cancelled", ErrRequest)
}

// Free is of Operation.
func (s *Steady) Free() error {
	return fmt.Errorf("%w: an operation that is no message cannot be left alone before it is complete", ErrRequest)
}

// BackgroundOp is something under way that goes on in whichever call of MPI the
// program makes. The process is locked.
type BackgroundOp interface {
	// CarryOn goes as far as it can without waiting, and reports whether it is over.
	CarryOn() (over bool)
}

// background are the operations that go on in whichever call of MPI the program makes.
type background struct{ List []BackgroundOp }

// Dispatch starts a background operation.
func (b *background) Dispatch(e BackgroundOp) {
	if !e.CarryOn() {
		b.List = append(b.List, e)
	}
}

// carryOn calls CarryOn of all background operations after something has arrived. They may end
// others or start new ones.
func (b *background) carryOn() {
	for i := 0; i < len(b.List); {
		e := b.List[i]
		if !e.CarryOn() {
			i++
			continue
		}
		if i = slices.Index(b.List, e); i >= 0 {
			b.List = slices.Delete(b.List, i, i+1)
		} else {
			i = 0
		}
	}
}

// Introduced is the first message of a Remote.
type Introduced struct {
	R *message.Request
	B [8]byte
}

// Remote is the proc at the other end of a temporary link, which was made by a port.
type Remote interface {
	// Gone says that the link is closed. The process is locked.
	Gone()
}
