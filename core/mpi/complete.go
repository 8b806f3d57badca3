package mpi

import (
	"errors"
	"fmt"

	"github.com/openimpi/impi/core/message"
)

// Waitall waits for all of reqs. statuses gets their results if it is not nil;
// it must then be as long as reqs. Where a request fails the others are still
// completed, and the error wraps ErrInStatus and each failure. But once one has
// failed because its peer is gone, those that are not complete are not waited for:
// their status has ErrPending.
func Waitall(reqs []Request, statuses []Status) error {
	c, err := waitall(reqs, statuses)
	return c.failed("Waitall", err)
}

// waitall also gives the communicator whose handler is to hear of the error: that
// of the first request that failed.
func waitall(reqs []Request, statuses []Status) (*Comm, error) {
	if err := checkLen(reqs, statuses); err != nil {
		return noted(reqs), err
	}
	var f faults
	var p *process // that is locked
	defer func() { // even if memory of a message is not there
		if p != nil {
			p.unlock()
		}
	}()
	for i := range reqs {
		q, c := &reqs[i], reqs[i].c
		if q.state == active && c.p != p { // mostly all are of one
			if p != nil {
				p.unlock()
			}
			p = c.p
			p.lock()
		}
		if statuses == nil && !f.down && q.settle() {
			continue
		}
		st, err := q.waitBeside(f.down)
		switch {
		case errors.Is(err, ErrPending):
			st.Err = err
		case err != nil:
			st.Err = f.add(c, i, err)
		}
		if statuses != nil {
			statuses[i] = st
		}
	}
	return f.c, f.err()
}

// settle completes the request of a message as almost all are: without an error, and
// nobody asks for its status. It gives false if the request has to be completed
// as others are. The process is locked.
func (q *Request) settle() bool {
	r := q.r
	if q.state != active || q.extra != nil {
		return false
	}
	p := q.c.p
	for r.Generation() == q.gen && !r.Done() && p.failure == nil {
		p.turn()
	}
	if r.Generation() != q.gen || !r.Done() || r.Err() != nil || r.User != nil {
		return false
	}
	p.eng.Release(r)
	*q = Request{}
	return true
}

// Testall completes all of reqs if that can be done without waiting, and none
// of them if not.
func Testall(reqs []Request, statuses []Status) (done bool, err error) {
	done, c, err := testall(reqs, statuses)
	return done, c.failed("Testall", err)
}

func testall(reqs []Request, statuses []Status) (done bool, c *Comm, err error) {
	if err := checkLen(reqs, statuses); err != nil {
		return false, noted(reqs), err
	}
	for i := range reqs {
		if done, err := reqs[i].ready(); err != nil || !done {
			return false, reqs[i].c, err
		}
	}
	c, err = waitall(reqs, statuses)
	return true, c, err
}

// Waitany waits for one of reqs and completes it. i is Undefined where none is
// active.
func Waitany(reqs []Request) (i int, st Status, err error) {
	for {
		i, any, c, st, err := testany(reqs)
		if i != Undefined || !any {
			return i, st, c.failed("Waitany", err)
		}
		await(reqs)
	}
}

// Testany completes one of reqs if that can be done without waiting. done with i
// Undefined means that none is active.
func Testany(reqs []Request) (i int, done bool, st Status, err error) {
	progress(reqs)
	i, any, c, st, err := testany(reqs)
	return i, i != Undefined || !any, st, c.failed("Testany", err)
}

// Waitsome waits until at least one of reqs is complete and completes all that
// are. It gives their indices; nil where none is active. statuses[k] belongs to
// indices[k]; it may be nil, and must else be as long as reqs.
func Waitsome(reqs []Request, statuses []Status) (indices []int, err error) {
	if err := checkLen(reqs, statuses); err != nil {
		return nil, noted(reqs).failed("Waitsome", err)
	}
	for {
		indices, any, c, err := some(reqs, statuses)
		if len(indices) > 0 || !any {
			return indices, c.failed("Waitsome", err)
		}
		await(reqs)
	}
}

// Testsome is Waitsome without waiting. No indices and done mean that none of
// reqs is active.
func Testsome(reqs []Request, statuses []Status) (indices []int, done bool, err error) {
	if err := checkLen(reqs, statuses); err != nil {
		return nil, false, noted(reqs).failed("Testsome", err)
	}
	progress(reqs)
	indices, any, c, err := some(reqs, statuses)
	return indices, len(indices) > 0 || !any, c.failed("Testsome", err)
}

// testany completes the first request that is done, one of c. any tells whether
// one is active at all.
func testany(reqs []Request) (i int, any bool, c *Comm, st Status, err error) {
	for i := range reqs {
		q := &reqs[i]
		if q.state == null || q.state == inactive {
			continue
		}
		any, c = true, q.c
		if done, st, err := q.take(); done {
			return i, any, c, st, err
		}
	}
	return Undefined, any, nil, emptyStatus, nil
}

// some completes all requests that are done.
func some(reqs []Request, statuses []Status) (indices []int, any bool, c *Comm, err error) {
	var f faults
	for i := range reqs {
		q := &reqs[i]
		if q.state == null || q.state == inactive {
			continue
		}
		any, c = true, q.c
		done, st, err := q.take()
		if !done {
			continue
		}
		if err != nil {
			st.Err = f.add(c, i, err)
		}
		if statuses != nil {
			statuses[len(indices)] = st
		}
		indices = append(indices, i)
	}
	return indices, any, f.c, f.err()
}

// take completes q if it is done, without making progress.
func (q *Request) take() (done bool, st Status, err error) {
	if q.state != active {
		return true, q.trivial(), nil
	}
	q.c.p.lock()
	defer q.c.p.unlock()
	if done, err = q.done(); err != nil {
		return true, Status{}, err
	}
	if !done && q.c.p.failure == nil {
		return false, Status{}, nil
	}
	st, err = q.finish()
	return true, st, err
}

// await makes progress, waiting for it, if any of reqs is active and none is done.
func await(reqs []Request) {
	var p *process
	for i := range reqs {
		if reqs[i].state == active {
			p = reqs[i].c.p
			break
		}
	}
	if p == nil {
		return
	}
	p.lock()
	defer p.unlock()
	for i := range reqs {
		if reqs[i].state != active {
			continue
		}
		if done, err := reqs[i].done(); done || err != nil {
			return // it was completed while we did not hold the lock
		}
	}
	p.turn()
}

// progress makes the progress that can be had without waiting.
func progress(reqs []Request) {
	for i := range reqs {
		if reqs[i].state == active {
			reqs[i].c.p.lock()
			reqs[i].c.p.test()
			reqs[i].c.p.unlock()
			return
		}
	}
}

func checkLen(reqs []Request, statuses []Status) error {
	if statuses != nil && len(statuses) != len(reqs) {
		return fmt.Errorf("%w: %d statuses for %d requests", ErrArg, len(statuses), len(reqs))
	}
	return nil
}

// noted is the communicator whose handler hears of errors of calls on requests
// that concern none of them: nil if there is none.
func noted(reqs []Request) *Comm {
	for i := range reqs {
		if reqs[i].c != nil {
			return reqs[i].c.p.noted()
		}
	}
	return nil
}

// faults are the errors of several requests.
type faults struct {
	c    *Comm // of the first
	errs []error
	down bool // one is that a peer is gone
}

// add notes the error of request i, and gives it back.
func (f *faults) add(c *Comm, i int, err error) error {
	if f.errs == nil {
		f.c = c
	}
	f.down = f.down || errors.Is(err, message.ErrPeerDown)
	f.errs = append(f.errs, fmt.Errorf("request %d: %w", i, err))
	return err
}

func (f *faults) err() error {
	if f.errs == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrInStatus, errors.Join(f.errs...))
}
