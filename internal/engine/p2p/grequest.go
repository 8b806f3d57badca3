package p2p

import (
	"errors"
	"fmt"

	"github.com/openimpi/impi/internal/engine/proc"
)

// Generalized contains the functions of a generalized request (MPI-4.1, 13.2): an operation of the
// program's own that is waited for like those of MPI. Each may be nil. They are called in the
// goroutine of the MPI call that needs them, and may call MPI.
type Generalized struct {
	// Query fills in the status of the operation, which is complete. It may be
	// called more than once.
	Query func(st *proc.Status) error
	// Free is called once, when the operation is complete and the request has been completed or
	// freed.
	Free func() error
	// Cancel is called to cancel the operation; complete reports whether it is complete already. If
	// the operation is cancelled, Query must report that with SetCancelled. The program must call
	// Complete in any case.
	Cancel func(complete bool) error
}

// GrequestStart returns the request of an operation that the program has begun (MPI-4.1, 13.2).
func GrequestStart(g Generalized) (proc.Request, error) {
	p, err := proc.Current()
	if err != nil {
		return proc.Request{}, err
	}
	return Grequest(p, g), nil
}

// Grequest returns the request of an operation that the program has begun.
func Grequest(p *proc.Process, g Generalized) proc.Request {
	return p.NewOperationRequest(nil, "", &generalized{p: p, fns: g})
}

type generalized struct {
	p        *proc.Process
	fns      Generalized
	gen      uint32
	complete bool
	orphan   bool // the request was freed or given up before the operation was complete
}

// Complete says that the operation of a generalized request is complete (MPI-4.1, 13.2).
func Complete(q *proc.Request) error {
	g, ok := q.Op().(*generalized)
	if !ok {
		return fmt.Errorf("%w: it is no generalized request", proc.ErrRequest)
	}
	return g.end()
}

func (g *generalized) end() error {
	p := g.p
	p.Lock()
	defer p.Unlock()
	if g.complete {
		return fmt.Errorf("%w: it is complete already", proc.ErrRequest)
	}
	g.complete = true
	p.WakeAll()
	if g.orphan {
		return g.release()
	}
	return nil
}

func (g *generalized) Generation() uint32 { return g.gen }

func (g *generalized) Done() bool { return g.complete }

func (g *generalized) Status() (proc.Status, error) {
	st := proc.EmptyStatus
	if g.fns.Query == nil {
		return st, nil
	}
	g.p.Unlock()
	defer g.p.Lock()
	err := g.fns.Query(&st)
	return st, err
}

func (g *generalized) Finish() (proc.Status, error) {
	g.gen++
	if !g.complete {
		g.orphan = true
		return proc.Status{}, g.p.Failure
	}
	st, err := g.Status()
	return st, errors.Join(err, g.release())
}

// release calls the program's Free, without the lock.
func (g *generalized) release() error {
	if g.fns.Free == nil {
		return nil
	}
	g.p.Unlock()
	defer g.p.Lock()
	return g.fns.Free()
}

func (g *generalized) Cancel() error {
	if g.fns.Cancel == nil {
		return nil
	}
	complete := g.complete
	g.p.Unlock()
	defer g.p.Lock()
	return g.fns.Cancel(complete)
}

func (g *generalized) Free() error {
	g.gen++
	if !g.complete {
		g.orphan = true
		return nil
	}
	return g.release()
}
