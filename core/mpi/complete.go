package mpi

import (
	"errors"
	"fmt"
)

// Waitall waits for all of reqs. statuses gets their results if it is not nil;
// it must then be as long as reqs. Where a request fails the others are still
// completed, and the error wraps ErrInStatus and each failure.
func Waitall(reqs []Request, statuses []Status) error {
	if err := checkLen(reqs, statuses); err != nil {
		return failed("Waitall", err)
	}
	var faults []error
	var p *process // that is locked
	for i := range reqs {
		if q := &reqs[i]; q.state == active && q.p != p { // mostly all are of one
			if p != nil {
				p.unlock()
			}
			p = q.p
			p.lock()
		}
		st, err := reqs[i].wait()
		if err != nil {
			faults = append(faults, fmt.Errorf("request %d: %w", i, err))
			st.Err = err
		}
		if statuses != nil {
			statuses[i] = st
		}
	}
	if p != nil {
		p.unlock()
	}
	return failed("Waitall", inStatus(faults))
}

// Testall completes all of reqs if that can be done without waiting, and none
// of them if not.
func Testall(reqs []Request, statuses []Status) (done bool, err error) {
	if err := checkLen(reqs, statuses); err != nil {
		return false, failed("Testall", err)
	}
	for i := range reqs {
		done, _, err := reqs[i].Status()
		if err != nil {
			return false, failed("Testall", err)
		}
		if !done {
			return false, nil
		}
	}
	return true, Waitall(reqs, statuses)
}

// Waitany waits for one of reqs and completes it. i is Undefined where none is
// active.
func Waitany(reqs []Request) (i int, st Status, err error) {
	for {
		i, any, st, err := testany(reqs)
		if i != Undefined || !any {
			return i, st, failed("Waitany", err)
		}
		await(reqs)
	}
}

// Testany completes one of reqs if that can be done without waiting. done with i
// Undefined means that none is active.
func Testany(reqs []Request) (i int, done bool, st Status, err error) {
	progress(reqs)
	i, any, st, err := testany(reqs)
	return i, i != Undefined || !any, st, failed("Testany", err)
}

// Waitsome waits until at least one of reqs is complete and completes all that
// are. It gives their indices; nil where none is active. statuses[k] belongs to
// indices[k]; it may be nil, and must else be as long as reqs.
func Waitsome(reqs []Request, statuses []Status) (indices []int, err error) {
	if err := checkLen(reqs, statuses); err != nil {
		return nil, failed("Waitsome", err)
	}
	for {
		indices, any, err := some(reqs, statuses)
		if len(indices) > 0 || !any {
			return indices, failed("Waitsome", err)
		}
		await(reqs)
	}
}

// Testsome is Waitsome without waiting. No indices and done mean that none of
// reqs is active.
func Testsome(reqs []Request, statuses []Status) (indices []int, done bool, err error) {
	if err := checkLen(reqs, statuses); err != nil {
		return nil, false, failed("Testsome", err)
	}
	progress(reqs)
	indices, any, err := some(reqs, statuses)
	return indices, len(indices) > 0 || !any, failed("Testsome", err)
}

// testany completes the first request that is done. any tells whether one is
// active at all.
func testany(reqs []Request) (i int, any bool, st Status, err error) {
	for i := range reqs {
		q := &reqs[i]
		if q.state == null || q.state == inactive {
			continue
		}
		any = true
		if done, st, err := q.take(); done {
			return i, any, st, err
		}
	}
	return Undefined, any, emptyStatus, nil
}

// some completes all requests that are done.
func some(reqs []Request, statuses []Status) (indices []int, any bool, err error) {
	var faults []error
	for i := range reqs {
		q := &reqs[i]
		if q.state == null || q.state == inactive {
			continue
		}
		any = true
		done, st, err := q.take()
		if !done {
			continue
		}
		if err != nil {
			st.Err = err
			faults = append(faults, fmt.Errorf("request %d: %w", i, err))
		}
		if statuses != nil {
			statuses[len(indices)] = st
		}
		indices = append(indices, i)
	}
	return indices, any, inStatus(faults)
}

// take completes q if it is done, without making progress.
func (q *Request) take() (done bool, st Status, err error) {
	if q.state != active {
		return true, q.trivial(), nil
	}
	q.p.lock()
	defer q.p.unlock()
	if done, err = q.done(); err != nil {
		return true, Status{}, err
	}
	if !done && q.p.failure == nil {
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
			p = reqs[i].p
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
			reqs[i].p.lock()
			reqs[i].p.test()
			reqs[i].p.unlock()
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

func inStatus(faults []error) error {
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrInStatus, errors.Join(faults...))
}
