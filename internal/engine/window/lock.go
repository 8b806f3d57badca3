package window

import (
	"errors"
	"fmt"

	"github.com/openimpi/impi/core/rma"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/wireup"
)

// Lock opens a passive epoch of a rank's memory: exclusive, or shared with other members (MPI-4.1,
// 12.5.3). It waits until the lock is granted, unless assert is MPI_MODE_NOCHECK.
func (e *Epochs) Lock(t rma.LockType, rank int, assert rma.Assert) error {
	none, err := e.lockable(t, rank, assert)
	if none || err != nil {
		return err
	}
	e.w.Process.Lock()
	defer e.w.Process.Unlock()
	if err := e.now().MayLock(rank); err != nil {
		return err
	}
	e.now().Lock(rank, t)
	if err := e.locked([]int{rank}, t, assert); err != nil {
		e.now().Unlock(rank)
		return err
	}
	e.tell([]int{rank})
	return nil
}

// lockable checks the arguments of Lock; none reports whether the rank is ProcNull.
func (e *Epochs) lockable(t rma.LockType, rank int, assert rma.Assert) (none bool, err error) {
	if err := e.w.Check(); err != nil {
		return false, err
	}
	if !t.Valid() {
		return false, fmt.Errorf("%w: %d", rma.ErrLockType, int(t))
	}
	if err := assert.Check(rma.LockAsserts); err != nil {
		return false, err
	}
	return e.member(rank)
}

// member checks a rank; none reports that it is ProcNull.
func (e *Epochs) member(rank int) (none bool, err error) {
	if rank != proc.ProcNull && (rank < 0 || rank >= e.w.c.Size()) {
		return false, e.w.noRank(rank)
	}
	return rank == proc.ProcNull, nil
}

// locked requests the locks of ranks, all at the same time, and waits until they are granted
// (MPI-4.1, 12.5.3).
func (e *Epochs) locked(ranks []int, t rma.LockType, assert rma.Assert) error {
	e.w.Process.Test() // so that the others make progress while this proc locks its own memory in a loop
	unchecked := assert&rma.NoCheck != 0
	for _, rank := range ranks {
		e.w.origin.targets[rank].unchecked = unchecked
	}
	if unchecked {
		return nil
	}
	return e.w.origin.askAll(ranks, rma.Header{Kind: rma.Lock, Lock: t})
}

type question struct {
	*access
	begun uint64 // operations that were begun before the question
}

// askAll sends a request to ranks, all at the same time, and waits for the answers. The answer to a
// request that drains means that the operations before it are complete; those that another
// goroutine begins meanwhile may not be.
func (o *Origin) askAll(ranks []int, h rma.Header) (err error) {
	asked := make([]question, len(ranks))
	for i, rank := range ranks {
		asked[i] = question{o.ask(rank, h, parts{}), o.targets[rank].begun}
	}
	what := wireup.WantsWindow
	if h.Kind == rma.Lock {
		what = wireup.WantsLock
	}
	for i, a := range asked {
		if err := o.w.server.until(awaited{what: what, asked: asked[i:]}, func() (bool, error) { return a.Done(), nil }); err != nil {
			return err
		}
		if t := &o.targets[a.rank]; h.Kind.Drains() {
			t.acked = max(t.acked, a.begun)
		}
		err = errors.Join(err, a.err)
		a.discard()
	}
	return err
}

// LockAll opens a passive epoch of the memory of all members, which others may share (MPI-4.1,
// 12.5.3).
func (e *Epochs) LockAll(assert rma.Assert) error {
	if err := e.w.Check(); err != nil {
		return err
	}
	if err := assert.Check(rma.LockAsserts); err != nil {
		return err
	}
	e.w.Process.Lock()
	defer e.w.Process.Unlock()
	if err := e.now().MayLockAll(); err != nil {
		return err
	}
	e.now().LockAll()
	if err := e.locked(e.everybody(), rma.LockShared, assert); err != nil {
		e.now().UnlockAll()
		return err
	}
	e.tell(nil)
	return nil
}

func (e *Epochs) everybody() []int {
	all := make([]int, e.w.c.Size())
	for i := range all {
		all[i] = i
	}
	return all
}

// Unlock ends the epoch of Lock: the operations in it are complete at this member and at the rank
// (MPI-4.1, 12.5.3).
func (e *Epochs) Unlock(rank int) error {
	if err := e.w.Check(); err != nil {
		return err
	}
	if none, err := e.member(rank); none || err != nil {
		return err
	}
	e.w.Process.Lock()
	defer e.w.Process.Unlock()
	if _, err := e.now().Locked(rank); err != nil {
		return err
	}
	err := e.unlocked([]int{rank})
	e.now().Unlock(rank)
	e.tell([]int{rank})
	return err
}

// unlocked releases the locks of ranks, or completes operations under MPI_MODE_NOCHECK, for which
// there are no locks.
func (e *Epochs) unlocked(ranks []int) error {
	if len(ranks) > 0 && e.w.origin.targets[ranks[0]].unchecked {
		return e.w.origin.flush(ranks, true)
	}
	err := e.w.origin.drain(ranks)
	return errors.Join(err, e.w.origin.askAll(ranks, rma.Header{Kind: rma.Unlock}), e.w.origin.fault(ranks))
}

// UnlockAll ends the epoch of LockAll: the operations in it are complete everywhere (MPI-4.1,
// 12.5.3).
func (e *Epochs) UnlockAll() error {
	if err := e.w.Check(); err != nil {
		return err
	}
	e.w.Process.Lock()
	defer e.w.Process.Unlock()
	if err := e.now().MayUnlockAll(); err != nil {
		return err
	}
	err := e.unlocked(e.everybody())
	e.now().UnlockAll()
	e.tell(nil)
	return err
}
