package window

import (
	"errors"
	"fmt"

	"github.com/openimpi/impi/core/rma"
	"github.com/openimpi/impi/internal/engine/proc"
)

// LockType is how a lock admits others.
type LockType = rma.LockType

// The types of locks, with the values of the MPI ABI: MPI_LOCK_EXCLUSIVE and
// MPI_LOCK_SHARED.
const (
	LockExclusive = rma.LockExclusive
	LockShared    = rma.LockShared
)

func (w *Win) Lock(t LockType, rank int, assert Assert) error {
	return w.failed("Lock", w.lock(t, rank, assert))
}

func (w *Win) lock(t LockType, rank int, assert Assert) error {
	none, err := w.lockable(t, rank, assert)
	if none || err != nil {
		return err
	}
	w.Process.Lock()
	defer w.Process.Unlock()
	if err := w.epochs.MayLock(rank); err != nil {
		return err
	}
	w.epochs.Lock(rank, t)
	if err := w.locked([]int{rank}, t, assert); err != nil {
		w.epochs.Unlock(rank)
		return err
	}
	return nil
}

// lockable checks the arguments of Lock.
func (w *Win) lockable(t LockType, rank int, assert Assert) (none bool, err error) {
	if err := w.check(); err != nil {
		return false, err
	}
	if !t.Valid() {
		return false, fmt.Errorf("%w: %d", rma.ErrLockType, int(t))
	}
	if err := assert.Check(rma.LockAsserts); err != nil {
		return false, err
	}
	return w.member(rank)
}

// member checks a rank; none tells that it is ProcNull.
func (w *Win) member(rank int) (none bool, err error) {
	if rank != proc.ProcNull && (rank < 0 || rank >= w.c.Size()) {
		return false, w.noRank(rank)
	}
	return rank == proc.ProcNull, nil
}

// locked asks ranks for their locks, all at a time, and waits for them.
func (w *Win) locked(ranks []int, t LockType, assert Assert) error {
	w.Process.Test() // for the others, who wait while this proc locks its own memory in a loop
	unchecked := assert&rma.NoCheck != 0
	for _, rank := range ranks {
		w.targets[rank].unchecked = unchecked
	}
	if unchecked {
		return nil
	}
	return w.askAll(ranks, rma.Header{Kind: rma.Lock, Lock: t})
}

// question is something that a rank has been asked.
type question struct {
	*access
	begun uint64 // operations before it
}

// askAll asks ranks for something, all at a time, and waits for the answers. What
// drains tells that the operations before it are complete; those that another
// goroutine begins meanwhile may not be.
func (w *Win) askAll(ranks []int, h rma.Header) (err error) {
	asked := make([]question, len(ranks))
	for i, rank := range ranks {
		asked[i] = question{w.ask(rank, h, parts{}), w.targets[rank].begun}
	}
	for _, a := range asked {
		if err := w.until(func() (bool, error) { return a.Done(), nil }); err != nil {
			return err
		}
		if t := &w.targets[a.rank]; h.Kind.Drains() {
			t.acked = max(t.acked, a.begun)
		}
		err = errors.Join(err, a.err)
		a.discard()
	}
	return err
}

func (w *Win) LockAll(assert Assert) error { return w.failed("LockAll", w.lockAll(assert)) }

func (w *Win) lockAll(assert Assert) error {
	if err := w.check(); err != nil {
		return err
	}
	if err := assert.Check(rma.LockAsserts); err != nil {
		return err
	}
	w.Process.Lock()
	defer w.Process.Unlock()
	if err := w.epochs.MayLockAll(); err != nil {
		return err
	}
	w.epochs.LockAll()
	if err := w.locked(w.everybody(), rma.LockShared, assert); err != nil {
		w.epochs.UnlockAll()
		return err
	}
	return nil
}

func (w *Win) everybody() []int {
	all := make([]int, w.c.Size())
	for i := range all {
		all[i] = i
	}
	return all
}

func (w *Win) Unlock(rank int) error { return w.failed("Unlock", w.unlock(rank)) }

func (w *Win) unlock(rank int) error {
	if err := w.check(); err != nil {
		return err
	}
	if none, err := w.member(rank); none || err != nil {
		return err
	}
	w.Process.Lock()
	defer w.Process.Unlock()
	if _, err := w.epochs.Locked(rank); err != nil {
		return err
	}
	err := w.unlocked([]int{rank})
	w.epochs.Unlock(rank)
	return err
}

// unlocked gives locks back, or completes what was done without them.
func (w *Win) unlocked(ranks []int) error {
	if len(ranks) > 0 && w.targets[ranks[0]].unchecked {
		return w.flush(ranks, true)
	}
	err := w.drain(ranks)
	return errors.Join(err, w.askAll(ranks, rma.Header{Kind: rma.Unlock}), w.fault(ranks))
}

func (w *Win) UnlockAll() error { return w.failed("UnlockAll", w.unlockAll()) }

func (w *Win) unlockAll() error {
	if err := w.check(); err != nil {
		return err
	}
	w.Process.Lock()
	defer w.Process.Unlock()
	if err := w.epochs.MayUnlockAll(); err != nil {
		return err
	}
	err := w.unlocked(w.everybody())
	w.epochs.UnlockAll()
	return err
}
