package mpi

import (
	"github.com/openimpi/impi/internal/engine/p2p"
	"github.com/openimpi/impi/internal/engine/proc"
)

// Waitall waits for all of reqs. statuses gets their results if it is not nil;
// it must then be as long as reqs. Where a request fails the others are still
// completed, and the error wraps ErrInStatus and each failure. But once one has
// failed because its peer is gone, those that are not complete are not waited for:
// their status has ErrPending.
func Waitall(reqs []Request, statuses []Status) error {
	return p2p.Waitall(inner[proc.Request](reqs), inner[proc.Status](statuses))
}

// Testall completes all of reqs if that can be done without waiting, and none
// of them if not.
func Testall(reqs []Request, statuses []Status) (done bool, err error) {
	return p2p.Testall(inner[proc.Request](reqs), inner[proc.Status](statuses))
}

// Waitany waits for one of reqs and completes it. i is Undefined where none is
// active.
func Waitany(reqs []Request) (i int, st Status, err error) {
	return outIntStatus(p2p.Waitany(inner[proc.Request](reqs)))
}

// Testany completes one of reqs if that can be done without waiting. done with i
// Undefined means that none is active.
func Testany(reqs []Request) (i int, done bool, st Status, err error) {
	return outIntBoolStatus(p2p.Testany(inner[proc.Request](reqs)))
}

// Waitsome waits until at least one of reqs is complete and completes all that
// are. It gives their indices; nil where none is active. statuses[k] belongs to
// indices[k]; it may be nil, and must else be as long as reqs.
func Waitsome(reqs []Request, statuses []Status) (indices []int, err error) {
	return p2p.Waitsome(inner[proc.Request](reqs), inner[proc.Status](statuses))
}

// Testsome is Waitsome without waiting. No indices and done mean that none of
// reqs is active.
func Testsome(reqs []Request, statuses []Status) (indices []int, done bool, err error) {
	return p2p.Testsome(inner[proc.Request](reqs), inner[proc.Status](statuses))
}

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
func GrequestStart(g Generalized) (Request, error) { return outRequest(p2p.GrequestStart(g.in())) }

// Complete says that the operation of a generalized request is complete
// (MPI_Grequest_complete). The request has still to be completed by Wait or its like.
func (q *Request) Complete() error { return p2p.Complete(q.in()) }

// PsendInit makes an inactive request that sends b in parts parts of as many items
// each (MPI_Psend_init). Each time it is started, Pready has to be called for each
// part. b must not be changed from there to its completion.
func (c *Comm) PsendInit(b Buffer, parts, dst, tag int) (Request, error) {
	return outRequest(p2p.PsendInit(c.in(), proc.Buffer(b), parts, dst, tag))
}

// PrecvInit makes an inactive request that receives what a PsendInit sends into b,
// which has parts parts; the sender's may be more or fewer (MPI_Precv_init). There
// are no wildcards.
func (c *Comm) PrecvInit(b Buffer, parts, src, tag int) (Request, error) {
	return outRequest(p2p.PrecvInit(c.in(), proc.Buffer(b), parts, src, tag))
}

// Pready says that a part of an active partitioned send may be sent. Several
// goroutines may say it at a time, each of other parts.
func (q *Request) Pready(partition int) error { return p2p.Pready(q.in(), partition) }

// PreadyRange is Pready of the parts from low to high, both included.
func (q *Request) PreadyRange(low, high int) error { return p2p.PreadyRange(q.in(), low, high) }

// PreadyList is Pready of several parts.
func (q *Request) PreadyList(list []int) error { return p2p.PreadyList(q.in(), list) }

// Parrived tells whether a part of a partitioned receive has arrived. What is not
// active has.
func (q *Request) Parrived(partition int) (bool, error) { return p2p.Parrived(q.in(), partition) }

// SendInit makes an inactive request that sends buf each time it is started.
func SendInit[T Type](c *Comm, buf []T, dst, tag int) (Request, error) {
	return outRequest(p2p.SendInit(c.in(), buf, dst, tag))
}

// SsendInit is SendInit in synchronous mode.
func SsendInit[T Type](c *Comm, buf []T, dst, tag int) (Request, error) {
	return outRequest(p2p.SsendInit(c.in(), buf, dst, tag))
}

// BsendInit is SendInit in buffered mode.
func BsendInit[T Type](c *Comm, buf []T, dst, tag int) (Request, error) {
	return outRequest(p2p.BsendInit(c.in(), buf, dst, tag))
}

// RsendInit is SendInit in ready mode.
func RsendInit[T Type](c *Comm, buf []T, dst, tag int) (Request, error) {
	return outRequest(p2p.RsendInit(c.in(), buf, dst, tag))
}

// RecvInit makes an inactive request that receives into buf each time it is started.
func RecvInit[T Type](c *Comm, buf []T, src, tag int) (Request, error) {
	return outRequest(p2p.RecvInit(c.in(), buf, src, tag))
}

// Start begins the operation of an inactive request. Starting an active one is
// ErrRequest.
func (q *Request) Start() error { return p2p.Start(q.in()) }

// SendInit makes an inactive request that sends b each time it is started. The
// datatype may be freed meanwhile.
func (c *Comm) SendInit(b Buffer, dst, tag int) (Request, error) {
	return outRequest(p2p.SendInitItems(c.in(), proc.Buffer(b), dst, tag))
}

// SsendInit is SendInit in synchronous mode.
func (c *Comm) SsendInit(b Buffer, dst, tag int) (Request, error) {
	return outRequest(p2p.SsendInitItems(c.in(), proc.Buffer(b), dst, tag))
}

// BsendInit is SendInit in buffered mode.
func (c *Comm) BsendInit(b Buffer, dst, tag int) (Request, error) {
	return outRequest(p2p.BsendInitItems(c.in(), proc.Buffer(b), dst, tag))
}

// RsendInit is SendInit in ready mode.
func (c *Comm) RsendInit(b Buffer, dst, tag int) (Request, error) {
	return outRequest(p2p.RsendInitItems(c.in(), proc.Buffer(b), dst, tag))
}

// RecvInit makes an inactive request that receives into b each time it is started.
func (c *Comm) RecvInit(b Buffer, src, tag int) (Request, error) {
	return outRequest(p2p.RecvInitItems(c.in(), proc.Buffer(b), src, tag))
}

// Startall starts each of reqs, or none of them if one cannot be started.
func Startall(reqs []Request) error { return p2p.Startall(inner[proc.Request](reqs)) }

// Request is a send or receive under way. The zero value is the null request,
// which is complete. A completed request becomes null, one made by SendInit or
// RecvInit becomes inactive. Copies of a Request denote the same operation; once
// one of them was completed, using another is ErrRequest.
type Request proc.Request

// Null tells whether there is nothing to complete: the request was never made,
// or is complete.
func (q *Request) Null() bool { return q.in().Null() }

// Wait blocks until the request is complete. The status of a send tells only
// whether it was cancelled. Null and inactive requests are complete, with an
// empty status.
func (q *Request) Wait() (Status, error) { return outStatus(q.in().Wait()) }

// Test completes the request if that can be done without waiting.
func (q *Request) Test() (done bool, st Status, err error) { return outBoolStatus(q.in().Test()) }

// Status tells whether the request is complete, as Test, but leaves it as it is
// (MPI_Request_get_status).
func (q *Request) Status() (done bool, st Status, err error) { return outBoolStatus(q.in().Status()) }

// Cancel asks for the operation to be taken back, and returns at once. The
// request must still be completed: it then tells whether it was cancelled or took
// place; never both, never neither.
func (q *Request) Cancel() error { return q.in().Cancel() }

// Free forgets the request, which becomes null. The operation still takes
// place; buffers must stay untouched, though nothing tells until when.
func (q *Request) Free() error { return q.in().Free() }

// Statusany is Testany that leaves the request as it is
// (MPI_Request_get_status_any).
func Statusany(reqs []Request) (i int, done bool, st Status, err error) {
	return outIntBoolStatus(p2p.Statusany(inner[proc.Request](reqs)))
}

// Statusall is Testall that leaves the requests as they are
// (MPI_Request_get_status_all).
func Statusall(reqs []Request, statuses []Status) (done bool, err error) {
	return p2p.Statusall(inner[proc.Request](reqs), inner[proc.Status](statuses))
}

// Statussome is Testsome that leaves the requests as they are
// (MPI_Request_get_status_some).
func Statussome(reqs []Request, statuses []Status) (indices []int, done bool, err error) {
	return p2p.Statussome(inner[proc.Request](reqs), inner[proc.Status](statuses))
}
