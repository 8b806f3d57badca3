package rma

import (
	"fmt"
	"slices"
)

// Epochs are the epochs that one proc has open on a window: at most one access epoch, in which it
// may begin operations, and one exposure epoch, in which others may access its memory (MPI-4.1,
// 12.5). In the zero value none is open. A call that does not fit the open epochs returns ErrSync
// and changes nothing.
type Epochs struct {
	access  access
	used    bool  // operations were begun since the fence
	started []int // targets of Start, sorted
	posted  []int // origins of Post
	open    bool  // Post has been called
	locks   map[int]LockType
}

type access uint8

const (
	noAccess access = iota
	byFence
	byStart
	byLock
	byLockAll
)

var accessNames = [...]string{"no epoch is open", "an epoch opened by Fence is", "an epoch opened by Start is",
	"locks are held", "LockAll is in force"}

func (e *Epochs) wrong(what string) error {
	return fmt.Errorf("%w: %s, while %s", ErrSync, what, accessNames[e.access])
}

// free reports whether another access epoch can be opened. A fence that no operation has
// followed does not prevent that.
func (e *Epochs) free() bool { return e.access == noAccess || e.access == byFence && !e.used }

// MayFence returns ErrSync if another synchronisation is open, so that no fence is allowed
// (MPI-4.1, 12.5.1).
func (e *Epochs) MayFence() error {
	if e.access > byFence {
		return e.wrong("Fence")
	}
	if e.open {
		return fmt.Errorf("%w: Fence, while an epoch opened by Post is open", ErrSync)
	}
	return nil
}

// Fence records a fence, which has ended all epochs before it (MPI-4.1, 12.5.1). more is true if it
// opens new ones, which a fence with NoSucceed does not.
func (e *Epochs) Fence(more bool) {
	e.access, e.used = noAccess, false
	if more {
		e.access = byFence
	}
}

// Start opens an access epoch to some targets (MPI-4.1, 12.5.2).
func (e *Epochs) Start(targets []int) error {
	if !e.free() {
		return e.wrong("Start")
	}
	e.access, e.started = byStart, slices.Sorted(slices.Values(targets))
	return nil
}

// Started returns the targets of Start, sorted, or ErrSync without Start.
func (e *Epochs) Started() ([]int, error) {
	if e.access != byStart {
		return nil, e.wrong("Complete")
	}
	return e.started, nil
}

// Complete closes the epoch that Start opened.
func (e *Epochs) Complete() { e.access, e.started = noAccess, nil }

// Post opens an exposure epoch to some origins (MPI-4.1, 12.5.2).
func (e *Epochs) Post(origins []int) error {
	switch {
	case e.open:
		return fmt.Errorf("%w: Post, while an epoch opened by Post is open", ErrSync)
	case e.access == byFence && e.used:
		return e.wrong("Post")
	}
	e.open, e.posted = true, slices.Clone(origins)
	return nil
}

// Posted returns the origins of Post, or ErrSync without Post.
func (e *Epochs) Posted() ([]int, error) {
	if !e.open {
		return nil, fmt.Errorf("%w: Wait or Test without Post", ErrSync)
	}
	return e.posted, nil
}

// Wait closes the epoch that Post opened.
func (e *Epochs) Wait() { e.open, e.posted = false, nil }

// MayLock returns ErrSync if the target is locked already or another kind of access epoch is open
// (MPI-4.1, 12.5.3).
func (e *Epochs) MayLock(target int) error {
	if _, twice := e.locks[target]; twice {
		return fmt.Errorf("%w: Lock of rank %d, which is locked already", ErrSync, target)
	}
	if e.access != byLock && !e.free() {
		return e.wrong("Lock")
	}
	return nil
}

// Lock opens an access epoch to one target.
func (e *Epochs) Lock(target int, t LockType) {
	if e.locks == nil {
		e.locks = make(map[int]LockType)
	}
	e.access, e.locks[target] = byLock, t
}

// Locked returns the type of the lock that this proc has on a target, or ErrSync if it has none.
func (e *Epochs) Locked(target int) (LockType, error) {
	t, ok := e.locks[target]
	if !ok {
		return 0, fmt.Errorf("%w: Unlock of rank %d, which Lock has not locked", ErrSync, target)
	}
	return t, nil
}

// Unlock closes the epoch that Lock opened.
func (e *Epochs) Unlock(target int) {
	if delete(e.locks, target); len(e.locks) == 0 {
		e.access = noAccess
	}
}

// MayLockAll returns ErrSync if another access epoch is open (MPI-4.1, 12.5.3).
func (e *Epochs) MayLockAll() error {
	if !e.free() {
		return e.wrong("LockAll")
	}
	return nil
}

// LockAll opens an access epoch to all targets.
func (e *Epochs) LockAll() { e.access = byLockAll }

// MayUnlockAll returns an error unless LockAll is in force.
func (e *Epochs) MayUnlockAll() error {
	if e.access != byLockAll {
		return e.wrong("UnlockAll")
	}
	return nil
}

// UnlockAll closes the epoch that LockAll opened.
func (e *Epochs) UnlockAll() { e.access = noAccess }

// Use records that operations of the access epoch were begun by code that has not asked Operate.
func (e *Epochs) Use() { e.used = true }

// Scope returns every, which is true if operations may begin at all targets, and not only at those
// that Admits allows, and passive, which is true if the access epoch was opened by a lock, so that
// operations may be flushed.
func (e *Epochs) Scope() (every, passive bool) {
	return e.access == byFence || e.access == byLockAll, e.access >= byLock
}

// Operate returns an error if no operation at a target can begin. passive reports whether the
// operation belongs to an epoch opened by a lock. request is true for an operation that returns a
// request, which is allowed only in such epochs (MPI-4.1, 12.3.5).
func (e *Epochs) Operate(target int, request bool) (passive bool, err error) {
	passive, fits := e.Admits(target)
	if !fits || request && !passive {
		return false, e.wrong(fmt.Sprintf("an operation at rank %d", target))
	}
	e.used = true
	return passive, nil
}

// Admits returns fits, which is true if an operation may begin at a target, and passive, which is
// true if the epoch was opened by a lock.
func (e *Epochs) Admits(target int) (passive, fits bool) {
	switch e.access {
	case byFence:
		return false, true
	case byStart:
		_, fits = slices.BinarySearch(e.started, target)
		return false, fits
	case byLock:
		_, fits = e.locks[target]
		return true, fits
	case byLockAll:
		return true, true
	default:
		return false, false
	}
}

// MayFlush returns an error if operations at a target cannot be flushed. A negative target means
// all targets (MPI-4.1, 12.5.4).
func (e *Epochs) MayFlush(target int) error {
	if e.access < byLock {
		return e.wrong("a flush")
	}
	if target >= 0 {
		if _, fits := e.Admits(target); !fits {
			return e.wrong(fmt.Sprintf("a flush of rank %d", target))
		}
	}
	return nil
}

// MayFree returns an error if the window cannot be freed: an epoch is open, other than that
// of a fence that no operation has followed.
func (e *Epochs) MayFree() error {
	if !e.free() {
		return e.wrong("Free")
	}
	if e.open {
		return fmt.Errorf("%w: Free, while an epoch opened by Post is open", ErrSync)
	}
	return nil
}
