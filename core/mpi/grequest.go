package mpi

import (
	"errors"
	"fmt"
)

// Generalized are the functions of a generalized request: an operation of the
// program's own that is waited for like those of MPI. Each may be nil. They are
// called in the goroutine of the MPI call that needs them, and may call MPI.
type Generalized struct {
	// Query fills in the status of the operation, which is complete. It may be
	// called more than once.
	Query func(st *Status) error
	// Free is called once, last of all: when the operation is complete and
	// the request has been completed or freed.
	Free func() error
	// Cancel is asked to take the operation back, complete or not. If that works,
	// Query says so by SetCancelled; Complete is to be called in any case.
	Cancel func(complete bool) error
}

// GrequestStart makes the request of an operation that the program has begun
// (MPI_Grequest_start). Who carries it out calls Complete, with the request or a
// copy of it, in any goroutine.
func GrequestStart(g Generalized) (Request, error) {
	p, err := current()
	if err != nil {
		return Request{}, failed("GrequestStart", err)
	}
	return p.grequest(g), nil
}

func (p *process) grequest(g Generalized) Request {
	return p.begun(nil, "", &generalized{p: p, fns: g})
}

// generalized is the operation of a generalized request.
type generalized struct {
	p        *process
	fns      Generalized
	gen      uint32
	complete bool
	orphan   bool // freed, or given up, before it was complete
}

// Complete says that the operation of a generalized request is complete
// (MPI_Grequest_complete). The request has still to be completed by Wait or its like.
func (q *Request) Complete() error {
	g, ok := q.op().(*generalized)
	if !ok {
		return q.c.failed("Request.Complete", fmt.Errorf("%w: it is no generalized request", ErrRequest))
	}
	return q.c.failed("Request.Complete", g.end())
}

func (g *generalized) end() error {
	p := g.p
	p.lock()
	defer p.unlock()
	if g.complete {
		return fmt.Errorf("%w: it is complete already", ErrRequest)
	}
	g.complete = true
	p.rouse()
	if g.orphan {
		return g.release()
	}
	return nil
}

func (g *generalized) generation() uint32 { return g.gen }

func (g *generalized) done() bool { return g.complete }

func (g *generalized) status() (Status, error) {
	st := emptyStatus
	if g.fns.Query == nil {
		return st, nil
	}
	g.p.unlock()
	defer g.p.lock()
	err := g.fns.Query(&st)
	return st, err
}

func (g *generalized) finish() (Status, error) {
	g.gen++
	if !g.complete {
		g.orphan = true
		return Status{}, g.p.failure
	}
	st, err := g.status()
	return st, errors.Join(err, g.release())
}

// release calls Free.
func (g *generalized) release() error {
	if g.fns.Free == nil {
		return nil
	}
	g.p.unlock()
	defer g.p.lock()
	return g.fns.Free()
}

func (g *generalized) cancel() error {
	if g.fns.Cancel == nil {
		return nil
	}
	complete := g.complete
	g.p.unlock()
	defer g.p.lock()
	return g.fns.Cancel(complete)
}

func (g *generalized) free() error {
	g.gen++
	if !g.complete {
		g.orphan = true
		return nil
	}
	return g.release()
}
