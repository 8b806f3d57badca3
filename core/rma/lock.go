package rma

import "slices"

// LockType determines whether other procs may hold a lock at the same time (MPI-4.1, 12.5.3). The
// values are those of the MPI ABI.
type LockType int

// The types of locks.
const (
	LockExclusive LockType = 301
	LockShared    LockType = 302
)

// Valid reports whether t is one of MPI's two types, as a program's argument need not be.
func (t LockType) Valid() bool { return t == LockExclusive || t == LockShared }

// Locks is the lock of one proc's window: its holders, and the procs that wait for it. It is
// granted in the order of the requests, to several at a time if all are shared. The zero value is
// free.
type Locks struct {
	exclusive bool
	holders   []int
	queue     []claim
}

type claim struct {
	origin int
	t      LockType
}

// Request asks for the lock for an origin and reports whether it is granted at once; otherwise a
// later Release grants it. If the origin already holds the lock or waits for it, the error is
// ErrSync.
func (l *Locks) Request(origin int, t LockType) (granted bool, err error) {
	waits := slices.ContainsFunc(l.queue, func(c claim) bool { return c.origin == origin })
	if waits || slices.Contains(l.holders, origin) {
		return false, ErrSync
	}
	l.queue = append(l.queue, claim{origin, t})
	return len(l.admit(nil)) > 0, nil
}

// Release releases the lock and appends to granted the origins that hold it from now on. If the
// origin does not hold the lock, the error is ErrSync.
func (l *Locks) Release(origin int, granted []int) ([]int, error) {
	i := slices.Index(l.holders, origin)
	if i < 0 {
		return granted, ErrSync
	}
	l.holders = slices.Delete(l.holders, i, i+1)
	return l.admit(granted), nil
}

// Forget removes an origin that is lost: its lock is released, and it waits no more. The origins
// that get the lock are appended to granted.
func (l *Locks) Forget(origin int, granted []int) []int {
	is := func(x int) bool { return x == origin }
	l.holders = slices.DeleteFunc(l.holders, is)
	l.queue = slices.DeleteFunc(l.queue, func(c claim) bool { return c.origin == origin })
	return l.admit(granted)
}

// Contended returns the holders of the lock and the procs that wait for it, in the order of their
// requests, or nil and nil if none waits. The slices are the caller's.
func (l *Locks) Contended() (holders, waiters []int) {
	if len(l.queue) == 0 {
		return nil, nil
	}
	for _, c := range l.queue {
		waiters = append(waiters, c.origin)
	}
	return slices.Clone(l.holders), waiters
}

// admit grants the lock to the first in the queue, and to as many after it as may share it.
func (l *Locks) admit(granted []int) []int {
	for len(l.queue) > 0 {
		next := l.queue[0]
		if len(l.holders) > 0 && (l.exclusive || next.t == LockExclusive) {
			break
		}
		l.queue = slices.Delete(l.queue, 0, 1)
		l.holders, l.exclusive = append(l.holders, next.origin), next.t == LockExclusive
		granted = append(granted, next.origin)
	}
	return granted
}

// Excludes reports whether another origin holds the lock exclusively.
func (l *Locks) Excludes(origin int) bool {
	return l.exclusive && len(l.holders) > 0 && l.holders[0] != origin
}
