package mpi

import (
	"github.com/openimpi/impi/core/rma"
	"github.com/openimpi/impi/internal/engine/window"
)

// Target is where an operation goes: Count items of Type, Disp units up in the
// window of a rank. Nothing is done at ProcNull.
type Target struct {
	Rank  int
	Disp  int64
	Count int
	Type  *Datatype
}

// Assert is what a program promises when it opens or closes an epoch; several are combined by or.
// They are checked. NoSucceed opens no epoch and NoCheck takes no lock; the others change nothing.
type Assert = rma.Assert

// The assertions, with the values of the MPI ABI: MPI_MODE_NOCHECK and so on.
const (
	NoCheck   = window.NoCheck
	NoPrecede = window.NoPrecede
	NoPut     = window.NoPut
	NoStore   = window.NoStore
	NoSucceed = window.NoSucceed
)

// Fence ends the epochs that the last one opened, and opens others unless NoSucceed
// is asserted. All operations that any member has begun are complete everywhere
// then. All members call it.
func (w *Win) Fence(assert Assert) error { return w.in().Epochs().Fence(assert) }

// Post opens an exposure epoch to the members of a group, whose Start waits for it.
func (w *Win) Post(group *Group, assert Assert) error {
	return w.in().Epochs().Post(group.in(), assert)
}

// Start opens an access epoch to the members of a group. It blocks until all of
// them have called Post.
func (w *Win) Start(group *Group, assert Assert) error {
	return w.in().Epochs().Start(group.in(), assert)
}

// Complete ends the epoch that Start has opened. What it takes from and gets into
// can be used again; the targets have everything once their Wait returns.
func (w *Win) Complete() error { return w.in().Epochs().Complete() }

// Wait ends the epoch that Post has opened. It blocks until all of the group have
// called Complete and all of their operations are done.
func (w *Win) Wait() error { return w.in().Epochs().Wait() }

// Test is Wait that does not block: done tells whether the epoch is over.
func (w *Win) Test() (done bool, err error) { return w.in().Epochs().Test() }

// Flush completes all operations at a rank, here and there, in an epoch of Lock or
// LockAll.
func (w *Win) Flush(rank int) error { return w.in().Epochs().Flush(rank) }

// FlushLocal completes all operations at a rank at this side: memory that they
// take from and get into can be used again.
func (w *Win) FlushLocal(rank int) error { return w.in().Epochs().FlushLocal(rank) }

// FlushAll is Flush of all ranks.
func (w *Win) FlushAll() error { return w.in().Epochs().FlushAll() }

// FlushLocalAll is FlushLocal of all ranks.
func (w *Win) FlushLocalAll() error { return w.in().Epochs().FlushLocalAll() }

// Sync makes the caller's stores to the window's memory visible to operations, and
// theirs to its loads; in a window of WinAllocateShared those of all members.
func (w *Win) Sync() error { return w.in().Epochs().Sync() }

// LockType is how a lock admits others.
type LockType = rma.LockType

// The types of locks, with the values of the MPI ABI: MPI_LOCK_EXCLUSIVE and
// MPI_LOCK_SHARED.
const (
	LockExclusive = window.LockExclusive
	LockShared    = window.LockShared
)

// Lock opens an access epoch to one rank, and blocks until the lock is granted. It
// is given in the order of the requests. With NoCheck, which promises that nobody's
// lock conflicts, none is asked for.
func (w *Win) Lock(t LockType, rank int, assert Assert) error {
	return w.in().Epochs().Lock(t, rank, assert)
}

// LockAll opens an access epoch to all ranks: it locks them all, shared, and blocks
// until the locks are granted.
func (w *Win) LockAll(assert Assert) error { return w.in().Epochs().LockAll(assert) }

// Unlock ends the epoch that Lock has opened to a rank. All operations there are
// complete then, here and there.
func (w *Win) Unlock(rank int) error { return w.in().Epochs().Unlock(rank) }

// UnlockAll ends the epoch that LockAll has opened. All operations are complete
// then, here and there.
func (w *Win) UnlockAll() error { return w.in().Epochs().UnlockAll() }
