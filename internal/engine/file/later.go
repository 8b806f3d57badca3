package file

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/openimpi/impi/internal/engine/proc"
)

// Nonblocking operations run in goroutines of their own: independent ones in parallel, up to the
// number of places, and collective ones of a file one after the other, in the order in which the
// members have begun them. A file has one more line for blocking collective operations.

// places bounds how many independent operations of this process call the system at a time.
var places = make(chan struct{}, 16)

// line is where the collective operations of a file wait for those before them.
type line struct {
	mu   sync.Mutex
	last chan struct{} // closed when the last operation is over; nil: none was queued
}

// join returns a function that waits for all that is in line, and one that leaves it.
func (l *line) join() (wait, leave func()) {
	own := make(chan struct{})
	l.mu.Lock()
	before := l.last
	l.last = own
	l.mu.Unlock()
	return func() {
		if before != nil {
			<-before
		}
	}, func() { close(own) }
}

func (l *line) enter() (leave func()) {
	wait, leave := l.join()
	wait()
	return leave
}

type later struct {
	p          *proc.Process
	gen        uint32
	collective bool
	begun      bool // the system has it, or its goroutine has its turn
	cancelled  bool
	done       bool
	st         proc.Status
	err        error
}

// start begins do, which may take long, in a goroutine, and returns its request. wait waits for the
// operation's turn.
func start(f *File, collective bool, wait func(), do func() (proc.Status, error)) proc.Request {
	p := f.comm.Process()
	x := &later{p: p, collective: collective}
	f.under.Go(func() {
		wait()
		if !collective {
			places <- struct{}{}
			defer func() { <-places }()
		}
		x.end(x.do(do))
	})
	p.Lock()
	defer p.Unlock()
	return p.NewOperationRequest(f.comm, "", x)
}

// do calls the operation unless it was cancelled. A fault in memory of the program becomes an
// error.
func (x *later) do(do func() (proc.Status, error)) (st proc.Status, err error) {
	x.p.Lock()
	x.begun = true
	cancelled := x.cancelled
	x.p.Unlock()
	if cancelled {
		st = proc.EmptyStatus
		st.SetCancelled(true)
		return st, nil
	}
	defer recovered(debug.SetPanicOnFault(true), &err)
	return do()
}

// recovered turns the panic of a memory fault into an error. before is the previous setting of
// SetPanicOnFault.
func recovered(before bool, err *error) {
	debug.SetPanicOnFault(before)
	r := recover()
	if r == nil {
		return
	}
	at, ok := r.(interface{ Addr() uintptr })
	if !ok {
		panic(r)
	}
	*err = fmt.Errorf("%w: there is no memory at %#x", proc.ErrBuffer, at.Addr())
}

func (x *later) end(st proc.Status, err error) {
	x.p.Lock()
	defer x.p.Unlock()
	x.st, x.err, x.done = st, err, true
	x.p.WakeAll()
}

// Generation implements the operation of a request, like the methods below.
func (x *later) Generation() uint32 { return x.gen }

// Done reports whether the operation is over.
func (x *later) Done() bool { return x.done }

// Status returns the result of Finish.
func (x *later) Status() (proc.Status, error) { return x.st, x.err }

// Finish returns the result of the operation.
func (x *later) Finish() (proc.Status, error) {
	x.gen++
	if !x.done {
		return proc.Status{}, x.p.Failure
	}
	return x.st, x.err
}

var errTogether = errors.New("it is a collective operation of a file, which all members have to complete")

// Cancel makes an operation that has not been begun do nothing. Operations that have begun
// continue.
func (x *later) Cancel() error {
	if x.collective {
		return fmt.Errorf("%w: %w", proc.ErrRequest, errTogether)
	}
	x.cancelled = x.cancelled || !x.begun
	return nil
}

// Free lets the operation continue by itself.
func (x *later) Free() error {
	if x.collective {
		return fmt.Errorf("%w: %w", proc.ErrRequest, errTogether)
	}
	x.gen++
	return nil
}
