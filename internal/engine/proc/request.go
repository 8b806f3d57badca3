package proc

import (
	"fmt"

	"github.com/openimpi/impi/core/message"
)

// Request is a send or receive under way. The zero value is the null request, which is complete. A
// completed request becomes null, one made by SendInit or RecvInit becomes inactive. Copies of a
// Request denote the same operation; once one of them was completed, using another returns
// ErrRequest, unless the operation was complete from the start, as for a short message that has
// left at once.
type Request struct {
	// Four fields, four words: a request is returned and copied in registers. Its
	// message's stream, if any, is message.Request.User.
	c     *Comm // its error handler is called; nil: the null request
	r     *message.Request
	extra *RequestExtension // nil for most requests
	standing
}

type standing struct {
	Gen   uint32
	State requestState
	Fn    RequestFunc
}

// RequestExtension is the state of a request that is not a plain send or receive.
type RequestExtension struct {
	Op   operation // the operation, if it is no message
	Fn   string    // the function of MPI that has made the request
	Plan *Plan     // of a persistent request
}

// RequestFunc is the function of MPI that has made a message's request.
type RequestFunc uint8

// The functions that make requests of messages.
const (
	ByIsend RequestFunc = iota
	ByIssend
	ByIbsend
	ByIrsend
	ByIrecv // this and the following ones receive
	ByImrecv
	ByMessageIrecv
	ByMrecv // its receive is complete before its caller sees it
)

// RequestFuncNames are the functions' names in errors and diagnoses, by RequestFunc.
var RequestFuncNames = [...]string{"Isend", "Issend", "Ibsend", "Irsend", "Irecv", "Imrecv", "Message.Irecv", ""}

func (m RequestFunc) receives() bool { return m >= ByIrecv }

// Op returns the operation of the request, nil if it is a message.
func (q *Request) Op() operation {
	if q.extra == nil {
		return nil
	}
	return q.extra.Op
}

// Plan returns the plan of a persistent request, nil for others.
func (q *Request) Plan() *Plan {
	if q.extra == nil {
		return nil
	}
	return q.extra.Plan
}

func (q *Request) name() string {
	if q.extra == nil {
		return RequestFuncNames[q.Fn]
	}
	return q.extra.Fn
}

// streamOf returns the stream that packs or unpacks the message of r, or nil.
func streamOf(r *message.Request) *Stream {
	if r.User == nil {
		return nil
	}
	return r.User.(*Stream)
}

type requestState uint8

// The states of a request.
const (
	Null     requestState = iota
	Inactive              // persistent, and not started
	Active
	Trivial // complete without any work
)

func (q *Request) Null() bool { return q.State == Null }

// Complete waits until the request is complete.
func (q *Request) Complete() (Status, error) {
	if q.State != Active {
		return q.CompleteTrivial(), nil
	}
	p := q.c.p
	p.Lock()
	defer p.Unlock()
	return q.wait()
}

// wait is Complete for a caller that holds the lock.
func (q *Request) wait() (Status, error) {
	if q.State != Active {
		return q.CompleteTrivial(), nil
	}
	for {
		done, err := q.Done()
		if err != nil {
			return Status{}, err
		}
		if done || q.c.p.Failure != nil {
			return q.Finish()
		}
		q.Await()
	}
}

// Await is Process.AwaitProgress for a goroutine that waits for q, which is active.
func (q *Request) Await() {
	if q.r != nil {
		q.c.p.Account.AwaitRequest(q.r)
		return
	}
	if x, ok := q.Op().(looker); ok && composed(q.c.p) && !q.c.p.Account.on() && x.Poll() {
		return
	}
	q.c.p.Account.AwaitFor(ForOther, message.NoPeer)
}

// WaitUnlessDown is wait. But if down is set, which means that a peer is down, it returns
// ErrPending for a request that is not complete: it might never be (MPI-4.1, 3.7.5).
func (q *Request) WaitUnlessDown(down bool) (Status, error) {
	if !down || q.State != Active {
		return q.wait()
	}
	if done, err := q.poll(); err != nil || done {
		return q.wait()
	}
	return Status{}, ErrPending
}

func (q *Request) Test() (done bool, st Status, err error) {
	if q.State != Active {
		return true, q.CompleteTrivial(), nil
	}
	p := q.c.p
	p.Lock()
	defer p.Unlock()
	if done, err = q.poll(); err != nil || !done {
		return false, Status{}, err
	}
	st, err = q.Finish()
	return true, st, err
}

// Ready reports, after some progress, whether the request is done, without completing it.
func (q *Request) Ready() (bool, error) {
	if q.State != Active {
		return true, nil
	}
	q.c.p.Lock()
	defer q.c.p.Unlock()
	return q.poll()
}

func (q *Request) Status() (done bool, st Status, err error) {
	if done, err := q.Ready(); err != nil || !done {
		return false, Status{}, err
	}
	return q.Peek()
}

// Peek returns the status of a request that is done, without progress and without completing it.
func (q *Request) Peek() (done bool, st Status, err error) {
	if q.State != Active {
		if q.State == Trivial && q.Fn.receives() {
			return true, ProcNullStatus, nil
		}
		return true, EmptyStatus, nil
	}
	q.c.p.Lock()
	defer q.c.p.Unlock()
	if done, err = q.Done(); err != nil || !done {
		return false, Status{}, err
	}
	st = EmptyStatus
	switch {
	case q.Op() != nil:
		st, err = q.Op().Status()
	case q.Fn.receives():
		st = q.c.p.RecvStatus(q.r, streamOf(q.r))
	default:
		st.cancelled = q.r.Result().Cancelled
	}
	return true, st, err
}

func (q *Request) Cancel() error {
	if q.State == Trivial {
		return nil
	}
	if q.State != Active {
		return fmt.Errorf("%w: it is not active", ErrRequest)
	}
	q.c.p.Lock()
	defer q.c.p.Unlock()
	if _, err := q.Done(); err != nil {
		return err
	}
	if q.Op() != nil {
		return q.Op().Cancel()
	}
	q.c.p.Eng.Cancel(q.r)
	q.c.p.output()
	return nil
}

func (q *Request) Free() error {
	if q.State == Null {
		return fmt.Errorf("%w: it is null", ErrRequest)
	}
	if q.State != Active {
		*q = Request{}
		return nil
	}
	p := q.c.p
	p.Lock()
	defer p.Unlock()
	if _, err := q.Done(); err != nil {
		return err
	}
	if q.Op() != nil {
		if err := q.Op().Free(); err != nil {
			return err
		}
	} else {
		p.Eng.Release(q.r)
	}
	*q = Request{}
	return nil
}

// Done reports whether an active request has completed. It fails for a copy of a request that was
// completed by another copy.
func (q *Request) Done() (bool, error) {
	if q.generation() != q.Gen {
		return false, fmt.Errorf("%w: it has been completed through a copy of it", ErrRequest)
	}
	r := q.r
	if op := q.Op(); op != nil {
		f, ok := op.(*fastOp)
		if done := op.Done(); done || !ok || f.p.FastPath.adopted[f.i] == nil {
			return done, nil
		}
		r = f.p.FastPath.adopted[f.i] // a receive that C has begun
	}
	if r.Done() || q.c.p.Survival == nil {
		return r.Done(), nil
	}
	return false, q.c.p.Survival.pending(r)
}

func (q *Request) generation() uint32 {
	if q.Op() != nil {
		return q.Op().Generation()
	}
	return q.r.Generation()
}

// poll is Done after some progress.
func (q *Request) poll() (bool, error) {
	done, err := q.Done()
	if done || err != nil {
		return done, err
	}
	if q.c.p.Failure != nil {
		return false, q.c.p.Failure
	}
	q.c.p.Test()
	return q.Done()
}

// Finish takes the result of a request that is done, and makes the request null or inactive.
func (q *Request) Finish() (st Status, err error) {
	switch {
	case q.Op() != nil:
		st, err = q.Op().Finish()
	case q.Fn.receives():
		st, err = q.c.p.FinishRecv(q.r, streamOf(q.r))
	default:
		st = EmptyStatus
		st.cancelled = q.r.Result().Cancelled
		err = q.c.p.End(q.r, streamOf(q.r))
	}
	if err != nil {
		if fn := q.name(); fn != "" {
			err = fmt.Errorf("%s: %w", fn, err)
		}
	}
	q.reset()
	return st, err
}

// CompleteTrivial completes a request for which no work is needed.
func (q *Request) CompleteTrivial() Status {
	st := EmptyStatus
	if q.State == Trivial {
		if q.Fn.receives() {
			st = ProcNullStatus
		}
		q.reset()
	}
	return st
}

func (q *Request) reset() {
	if q.Plan() == nil {
		*q = Request{}
		return
	}
	*q = Request{c: q.c, extra: q.extra, standing: standing{State: Inactive}}
}

// Plan describes what a persistent request does each time it is started (MPI-4.1, 3.9).
type Plan struct {
	C         *Comm
	Fn        string
	Recv      bool
	Mode      message.Mode
	Buf       Buffer
	Peer, Tag int
	Parts     starter // of a partitioned request, instead of all the above
}

type starter interface{ Start(q *Request) error }

// NoPartner returns the request of a send or receive with ProcNull (MPI-4.1, 3.11).
func NoPartner(c *Comm, fn RequestFunc) Request {
	return Request{c: c, standing: standing{State: Trivial, Fn: fn}}
}

// NewSentRequest returns the request of a send that needs no further work.
func NewSentRequest(c *Comm, fn RequestFunc) Request { return NoPartner(c, fn) }

// NewPersistentRequest returns a persistent request, which Start starts by the plan in x (MPI-4.1,
// 3.9).
func NewPersistentRequest(c *Comm, x *RequestExtension) Request {
	return Request{c: c, extra: x, standing: standing{State: Inactive}}
}

// Comm returns the communicator whose error handler is called, or nil for the null request.
func (q *Request) Comm() *Comm { return q.c }

// Extension returns a pointer to the state of a request that is no plain message, which is nil for
// most requests.
func (q *Request) Extension() **RequestExtension { return &q.extra }

// Message returns the request of core/message, nil if the request is no message.
func (q *Request) Message() *message.Request { return q.r }
