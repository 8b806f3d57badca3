package p2p

import (
	"errors"
	"fmt"
	"time"

	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/internal/engine/proc"
)

// Functions for several requests (MPI-4.1, 3.7.5) also return the communicator whose error handler
// is called: that of the first request that failed.

func Waitall(reqs []proc.Request, statuses []proc.Status) (*proc.Comm, error) {
	if err := checkLen(reqs, statuses); err != nil {
		return noted(reqs), err
	}
	var f faults
	var p *proc.Process // the locked process
	defer func() {      // also after a memory fault in a message's buffer
		if p != nil {
			p.Unlock()
		}
	}()
	for i := range reqs {
		q, c := &reqs[i], reqs[i].Comm()
		if q.State == proc.Active && c.Process() != p { // usually all requests are of one process
			if p != nil {
				p.Unlock()
			}
			p = c.Process()
			p.Lock()
		}
		if statuses == nil && (q.State != proc.Active || !f.down && settle(q)) {
			q.CompleteTrivial()
			continue
		}
		st, err := q.WaitUnlessDown(f.down)
		switch {
		case errors.Is(err, proc.ErrPending):
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

// settle completes the request of a message without an error whose status is not asked for, as
// almost all are. It returns false if the request has to be completed by WaitUnlessDown. The
// request is active, and the process is locked.
func settle(q *proc.Request) bool {
	r := q.Message()
	if *q.Extension() != nil {
		return false
	}
	p := q.Comm().Process()
	for r.Generation() == q.Gen && !r.Done() && p.Failure == nil && p.Survival == nil {
		p.Account.AwaitRequest(r)
	}
	if r.Generation() != q.Gen || !r.Done() || r.Err() != nil || r.User != nil {
		return false
	}
	p.Eng.Release(r)
	*q = proc.Request{}
	return true
}

func Testall(reqs []proc.Request, statuses []proc.Status) (c *proc.Comm, done bool, err error) {
	if c, done, err := allReady(reqs, statuses); err != nil || !done {
		return c, false, err
	}
	c, err = Waitall(reqs, statuses)
	return c, true, err
}

// allReady reports whether all requests are complete, without completing them.
func allReady(reqs []proc.Request, statuses []proc.Status) (c *proc.Comm, done bool, err error) {
	if err := checkLen(reqs, statuses); err != nil {
		return noted(reqs), false, err
	}
	for i := range reqs {
		if done, err := reqs[i].Ready(); err != nil || !done {
			return reqs[i].Comm(), false, err
		}
	}
	return nil, true, nil
}

func Waitany(reqs []proc.Request) (c *proc.Comm, i int, st proc.Status, err error) {
	for waited := time.Duration(0); ; {
		i, any, c, st, err := testany(reqs)
		if i != proc.Undefined || !any {
			return c, i, st, err
		}
		await(reqs, &waited)
	}
}

func Testany(reqs []proc.Request) (c *proc.Comm, i int, done bool, st proc.Status, err error) {
	progress(reqs)
	i, any, c, st, err := testany(reqs)
	return c, i, i != proc.Undefined || !any, st, err
}

func Waitsome(reqs []proc.Request, statuses []proc.Status) (c *proc.Comm, indices []int, err error) {
	if err := checkLen(reqs, statuses); err != nil {
		return noted(reqs), nil, err
	}
	for waited := time.Duration(0); ; {
		indices, any, c, err := some(reqs, statuses)
		if len(indices) > 0 || !any {
			return c, indices, err
		}
		await(reqs, &waited)
	}
}

func Testsome(reqs []proc.Request, statuses []proc.Status) (c *proc.Comm, indices []int, done bool, err error) {
	if err := checkLen(reqs, statuses); err != nil {
		return noted(reqs), nil, false, err
	}
	progress(reqs)
	indices, any, c, err := some(reqs, statuses)
	return c, indices, len(indices) > 0 || !any, err
}

// testany completes the first request that is done, and returns its communicator. any reports
// whether one is active.
func testany(reqs []proc.Request) (i int, any bool, c *proc.Comm, st proc.Status, err error) {
	for i := range reqs {
		q := &reqs[i]
		if q.State == proc.Null || q.State == proc.Inactive {
			continue
		}
		any, c = true, q.Comm()
		if done, st, err := take(q); done {
			return i, any, c, st, err
		}
	}
	return proc.Undefined, any, nil, proc.EmptyStatus, nil
}

func some(reqs []proc.Request, statuses []proc.Status) (indices []int, any bool, c *proc.Comm, err error) {
	var f faults
	for i := range reqs {
		q := &reqs[i]
		if q.State == proc.Null || q.State == proc.Inactive {
			continue
		}
		any, c = true, q.Comm()
		done, st, err := take(q)
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

// take completes q if it is done. It makes no progress.
func take(q *proc.Request) (done bool, st proc.Status, err error) {
	if q.State != proc.Active {
		return true, q.CompleteTrivial(), nil
	}
	q.Comm().Process().Lock()
	defer q.Comm().Process().Unlock()
	if done, err = q.Done(); err != nil {
		return true, proc.Status{}, err
	}
	if !done && q.Comm().Process().Failure == nil {
		return false, proc.Status{}, nil
	}
	st, err = q.Finish()
	return true, st, err
}

// await makes progress, sleeping if necessary, until one of reqs is done, if any is active. waited
// is for how long its caller has waited in vain.
func await(reqs []proc.Request, waited *time.Duration) {
	var p *proc.Process
	for i := range reqs {
		if reqs[i].State == proc.Active {
			p = reqs[i].Comm().Process()
			break
		}
	}
	if p == nil {
		return
	}
	p.Lock()
	defer p.Unlock()
	for i := range reqs {
		if reqs[i].State != proc.Active {
			continue
		}
		if done, err := reqs[i].Done(); done || err != nil {
			return // another goroutine has completed it while this one did not hold the lock
		}
	}
	p.Account.AwaitAny(reqs, waited)
}

func progress(reqs []proc.Request) {
	for i := range reqs {
		if reqs[i].State == proc.Active {
			reqs[i].Comm().Process().Lock()
			reqs[i].Comm().Process().Test()
			reqs[i].Comm().Process().Unlock()
			return
		}
	}
}

func checkLen(reqs []proc.Request, statuses []proc.Status) error {
	if statuses != nil && len(statuses) != len(reqs) {
		return fmt.Errorf("%w: %d statuses for %d requests", proc.ErrArg, len(statuses), len(reqs))
	}
	return nil
}

// noted returns the communicator whose handler is told of errors of a call on requests, if none of
// them is to blame; nil if there is none.
func noted(reqs []proc.Request) *proc.Comm {
	for i := range reqs {
		if reqs[i].Comm() != nil {
			return reqs[i].Comm().Process().Comms.ErrorComm()
		}
	}
	return nil
}

type faults struct {
	c    *proc.Comm // communicator of the first request
	errs []error
	down bool // the peer of a request is down
}

func (f *faults) add(c *proc.Comm, i int, err error) error {
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
	return fmt.Errorf("%w: %w", proc.ErrInStatus, errors.Join(f.errs...))
}
