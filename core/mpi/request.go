package mpi

import (
	"fmt"

	"github.com/openimpi/impi/core/message"
)

// Request is a send or receive under way. The zero value is the null request,
// which is complete. A completed request becomes null, one made by SendInit or
// RecvInit becomes inactive. Copies of a Request denote the same operation; once
// one of them was completed, using another is ErrRequest.
type Request struct {
	// Four fields, four words: a request is returned and copied in registers. Its
	// message's stream, if any, is message.Request.User.
	c     *Comm // whose handler hears of errors; nil: none was ever made
	r     *message.Request
	extra *extra // nil, mostly
	standing
}

// standing is where a request is.
type standing struct {
	gen   uint32
	state requestState
	fn    maker
}

// extra is what a request has that is no message of its own.
type extra struct {
	op   operation // instead of a message
	fn   string    // that made it
	plan *plan     // of a persistent one
}

// maker is the function that made a message's request.
type maker uint8

const (
	byIsend maker = iota
	byIssend
	byIbsend
	byIrsend
	byIrecv // those from here on receive
	byImrecv
	byMessageIrecv
	byMrecv // which waits for it at once
)

var makers = [...]string{"Isend", "Issend", "Ibsend", "Irsend", "Irecv", "Imrecv", "Message.Irecv", ""}

func (m maker) receives() bool { return m >= byIrecv }

// op is what the request is about if it is no message.
func (q *Request) op() operation {
	if q.extra == nil {
		return nil
	}
	return q.extra.op
}

// plan is that of a persistent request.
func (q *Request) plan() *plan {
	if q.extra == nil {
		return nil
	}
	return q.extra.plan
}

// name is the function that made the request, for people.
func (q *Request) name() string {
	if q.extra == nil {
		return makers[q.fn]
	}
	return q.extra.fn
}

// streamOf packs or unpacks the message of r, if it is not memory as it stands.
func streamOf(r *message.Request) *stream {
	if r.User == nil {
		return nil
	}
	return r.User.(*stream)
}

type requestState uint8

const (
	null     requestState = iota
	inactive              // persistent, not started
	active
	procNull // nothing to do, but to be completed
)

// Null tells whether there is nothing to complete: the request was never made,
// or is complete.
func (q *Request) Null() bool { return q.state == null }

// Wait blocks until the request is complete. The status of a send tells only
// whether it was cancelled. Null and inactive requests are complete, with an
// empty status.
func (q *Request) Wait() (Status, error) {
	c := q.c
	st, err := q.complete()
	return st, c.failed("Wait", err)
}

// complete is Wait without the handler.
func (q *Request) complete() (Status, error) {
	if q.state != active {
		return q.trivial(), nil
	}
	p := q.c.p
	p.lock()
	defer p.unlock()
	return q.wait()
}

// wait is Wait for who has the lock.
func (q *Request) wait() (Status, error) {
	if q.state != active {
		return q.trivial(), nil
	}
	for {
		done, err := q.done()
		if err != nil {
			return Status{}, err
		}
		if done || q.c.p.failure != nil {
			return q.finish()
		}
		q.c.p.turn()
	}
}

// waitBeside is wait, but not for what may never be: where a peer is down only what
// is complete is completed, and the rest is ErrPending.
func (q *Request) waitBeside(down bool) (Status, error) {
	if !down || q.state != active {
		return q.wait()
	}
	if done, err := q.poll(); err != nil || done {
		return q.wait()
	}
	return Status{}, ErrPending
}

// Test completes the request if that can be done without waiting.
func (q *Request) Test() (done bool, st Status, err error) {
	c := q.c
	done, st, err = q.test()
	return done, st, c.failed("Test", err)
}

func (q *Request) test() (done bool, st Status, err error) {
	if q.state != active {
		return true, q.trivial(), nil
	}
	p := q.c.p
	p.lock()
	defer p.unlock()
	if done, err = q.poll(); err != nil || !done {
		return false, Status{}, err
	}
	st, err = q.finish()
	return true, st, err
}

// ready is Test that leaves the request as it is and has no status.
func (q *Request) ready() (bool, error) {
	if q.state != active {
		return true, nil
	}
	q.c.p.lock()
	defer q.c.p.unlock()
	return q.poll()
}

// Status tells whether the request is complete, as Test, but leaves it as it is
// (MPI_Request_get_status).
func (q *Request) Status() (done bool, st Status, err error) {
	done, st, err = q.status()
	return done, st, q.c.failed("Status", err)
}

func (q *Request) status() (done bool, st Status, err error) {
	if done, err := q.ready(); err != nil || !done {
		return false, Status{}, err
	}
	return q.peek()
}

// peek is status without progress.
func (q *Request) peek() (done bool, st Status, err error) {
	if q.state != active {
		if q.state == procNull && q.fn.receives() {
			return true, procNullStatus, nil
		}
		return true, emptyStatus, nil
	}
	q.c.p.lock()
	defer q.c.p.unlock()
	if done, err = q.done(); err != nil || !done {
		return false, Status{}, err
	}
	st = emptyStatus
	switch {
	case q.op() != nil:
		st, err = q.op().status()
	case q.fn.receives():
		st = q.c.p.arrived(q.r, streamOf(q.r))
	default:
		st.cancelled = q.r.Result().Cancelled
	}
	return true, st, err
}

// Cancel asks for the operation to be taken back, and returns at once. The
// request must still be completed: it then tells whether it was cancelled or took
// place; never both, never neither.
func (q *Request) Cancel() error { return q.c.failed("Cancel", q.cancel()) }

func (q *Request) cancel() error {
	if q.state == procNull {
		return nil
	}
	if q.state != active {
		return fmt.Errorf("%w: it is not active", ErrRequest)
	}
	q.c.p.lock()
	defer q.c.p.unlock()
	if _, err := q.done(); err != nil {
		return err
	}
	if q.op() != nil {
		return q.op().cancel()
	}
	q.c.p.eng.Cancel(q.r)
	q.c.p.output()
	return nil
}

// Free forgets the request, which becomes null. The operation still takes
// place; buffers must stay untouched, though nothing tells until when.
func (q *Request) Free() error {
	c := q.c
	return c.failed("Free", q.free())
}

func (q *Request) free() error {
	if q.state == null {
		return fmt.Errorf("%w: it is null", ErrRequest)
	}
	if q.state != active {
		*q = Request{}
		return nil
	}
	p := q.c.p
	p.lock()
	defer p.unlock()
	if _, err := q.done(); err != nil {
		return err
	}
	if q.op() != nil {
		if err := q.op().free(); err != nil {
			return err
		}
	} else {
		p.eng.Release(q.r)
	}
	*q = Request{}
	return nil
}

// done tells whether an active request has completed. It fails for a copy of
// one that was completed through another.
func (q *Request) done() (bool, error) {
	if q.generation() != q.gen {
		return false, fmt.Errorf("%w: it has been completed through a copy of it", ErrRequest)
	}
	if q.op() != nil {
		return q.op().done(), nil
	}
	return q.r.Done(), nil
}

// generation is that of what the request is about now.
func (q *Request) generation() uint32 {
	if q.op() != nil {
		return q.op().generation()
	}
	return q.r.Generation()
}

// poll is done after some progress.
func (q *Request) poll() (bool, error) {
	done, err := q.done()
	if done || err != nil {
		return done, err
	}
	if q.c.p.failure != nil {
		return false, q.c.p.failure
	}
	q.c.p.test()
	return q.done()
}

// finish takes the results out of a request that is done, and makes it null or
// inactive.
func (q *Request) finish() (st Status, err error) {
	switch {
	case q.op() != nil:
		st, err = q.op().finish()
	case q.fn.receives():
		st, err = q.c.p.received(q.r, streamOf(q.r))
	default:
		st = emptyStatus
		st.cancelled = q.r.Result().Cancelled
		err = q.c.p.end(q.r, streamOf(q.r))
	}
	if err != nil {
		if fn := q.name(); fn != "" {
			err = fmt.Errorf("%s: %w", fn, err)
		}
	}
	q.reset()
	return st, err
}

// trivial completes a request that needs no waiting.
func (q *Request) trivial() Status {
	st := emptyStatus
	if q.state == procNull {
		if q.fn.receives() {
			st = procNullStatus
		}
		q.reset()
	}
	return st
}

func (q *Request) reset() {
	if q.plan() == nil {
		*q = Request{}
		return
	}
	*q = Request{c: q.c, extra: q.extra, standing: standing{state: inactive}}
}

// plan is what a persistent request does each time it is started.
type plan struct {
	c         *Comm
	fn        string
	recv      bool
	mode      message.Mode
	buf       Buffer
	peer, tag int
	parts     starter // instead of all the above, of a partitioned one
}

// starter is what starts a persistent request that is no send or receive.
type starter interface{ start(q *Request) error }
