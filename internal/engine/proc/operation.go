package proc

import (
	"fmt"
	"slices"
	"time"

	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/internal/machine"
)

// operation is what a request stands for if it is no message: a collective operation, a generalized
// request, a communicator that is being made. Its process is locked at all calls; an operation that
// runs code of the program unlocks it meanwhile.
//
// An operation that goes on without a message calls Process.WakeAll.
type operation interface {
	// Generation changes when the operation is finished, so that copies of its request can be
	// recognised.
	Generation() uint32
	// Done continues the operation as far as possible without waiting, and reports whether it is
	// over.
	Done() bool
	// Status returns the result of Finish, for an operation that is over.
	Status() (Status, error)
	// Finish returns the result of an operation that is over, or never will be because the job has
	// ended, and ends it.
	Finish() (Status, error)
	// Cancel cancels the operation if that is possible, or returns an error.
	Cancel() error
	// Free lets the operation continue without its request, which becomes null, or returns an
	// error.
	Free() error
}

// NewOperationRequest returns the request of an operation that the function fn of MPI has begun on
// c, which may be nil.
func (p *Process) NewOperationRequest(c *Comm, fn string, op operation) Request {
	if c == nil {
		c = p.Comms.ErrorComm()
	}
	return (&RequestExtension{Op: op, Fn: fn}).NewRequest(c)
}

// NewRequest is NewOperationRequest for an operation that keeps the state of its request in its own
// memory, which is used again when it has ended.
func (x *RequestExtension) NewRequest(c *Comm) Request {
	return Request{c: c, extra: x, standing: standing{Gen: x.Op.Generation(), State: Active}}
}

// looker is an operation that waits for what another proc of the host writes to shared memory.
type looker interface {
	// Poll polls what the operation waits for, and reports whether the operation may continue. The
	// process is locked.
	Poll() bool
}

// Uncancellable is embedded in operations that can neither be cancelled nor freed.
type Uncancellable struct{ Gen uint32 }

// Generation implements operation.
func (s *Uncancellable) Generation() uint32 { return s.Gen }

// Cancel implements operation.
func (s *Uncancellable) Cancel() error {
	return fmt.Errorf("%w: it is no send, receive or generalized request, which can be cancelled", ErrRequest)
}

// Free implements operation.
func (s *Uncancellable) Free() error {
	return fmt.Errorf("%w: an operation that is no message cannot be left alone before it is complete", ErrRequest)
}

// StartedByC is an operation that C has begun and that Go continues.
type StartedByC interface {
	// Done, Status and Finish are the methods of a request's operation.
	Done() bool
	Status() (Status, error)
	Finish() (Status, error)
}

// BackgroundOp is an operation that continues during any call of MPI that the program makes. The
// process is locked.
type BackgroundOp interface {
	// CarryOn continues the operation as far as possible without waiting, and reports whether it is
	// over.
	CarryOn() (over bool)
}

// MessageDriven is a BackgroundOp that can have nothing to do until a message arrives.
type MessageDriven interface {
	BackgroundOp
	// WaitsForMessage reports whether the operation has nothing to do until then. The process is
	// locked.
	WaitsForMessage() bool
}

// background has the operations that continue during any call of MPI.
type background struct{ List []BackgroundOp }

// Dispatch adds a background operation.
func (b *background) Dispatch(e BackgroundOp) {
	if !e.CarryOn() {
		b.List = append(b.List, e)
	}
}

// busy reports whether one of the operations may go on before a message arrives.
func (b *background) busy() bool {
	for _, e := range b.List {
		if r, ok := e.(MessageDriven); !ok || !r.WaitsForMessage() {
			return true
		}
	}
	return false
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

func (b *background) drop(e BackgroundOp) {
	if i := slices.Index(b.List, e); i >= 0 {
		b.List = slices.Delete(b.List, i, i+1)
	}
}

// FirstMessage is the receive of the first message of a Remote, with its memory.
type FirstMessage struct {
	R *message.Request
	B [8]byte
}

// Remote is the proc at the other end of a temporary link, made at a port.
type Remote interface {
	// LinkClosed is called when the link is closed. The process is locked.
	LinkClosed()
}

// mostSteps bounds how long a periodic look goes on while there is always something more, in steps.
const mostSteps = 256

// periodic makes progress while the program computes: now and then it looks whether something can
// go on, if no call of MPI does so (MPI-4.1, 2.9 leaves it to the library).
type periodic struct {
	p     *Process
	every time.Duration
	timer machine.Timer
	off   bool
}

// ProgressPeriodically makes p progress while the program computes, if its job asks for that. It is
// called when Init is over; before, not all users of p lock it.
func ProgressPeriodically(p *Process) {
	p.Lock()
	defer p.Unlock()
	o := &p.periodic
	if o.p, o.every = p, p.Job.Progress; o.every > 0 && !o.off {
		o.timer = p.Machine.AfterFunc(time.Hour, o.look)
		o.timer.Reset(o.every) // now look can use the timer
	}
}

// end ends it. The process is locked.
func (o *periodic) end() {
	if o.off = true; o.timer != nil {
		o.timer.Stop()
	}
}

// look makes the progress that needs no waiting, unless a call does. It does not wait for the lock,
// and who holds it need not notice.
func (o *periodic) look() {
	p := o.p
	if !p.Mu.TryLock() {
		o.timer.Reset(o.every) // if end was called meanwhile, the next look is the last
		return
	}
	if p.FastPath != nil {
		p.FastPath.close(p)
	}
	if !o.off {
		if !p.Driving && p.Failure == nil {
			o.step()
		}
		o.timer.Reset(o.every)
	}
	p.Unlock()
}

func (o *periodic) step() {
	p := o.p
	p.Driving = true
	p.Endpoints.FlushAll()
	p.Driver.PollAll()
	for i := 0; p.step() && i < mostSteps && p.Driver.Wanted.Load() == 0; i++ {
		p.Background.carryOn()
	}
	p.Background.carryOn()
	p.Driving = false
}
