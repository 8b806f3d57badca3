package mpi

import (
	"errors"
	"testing"

	"github.com/openimpi/impi/internal/engine/construct"
)

// Several goroutines of a rank use one window in one epoch. A flush completes what
// its own goroutine has begun, whatever the others flush.
func TestWindowThreads(t *testing.T) {
	const threads, each = 4, 30
	ofWindows(t, 3, threads*3+1, func(w *Win, mem []int64) error {
		if err := w.LockAll(0); err != nil {
			return err
		}
		done := make(chan error, threads)
		for thread := range threads {
			go func() { done <- w.thread(thread, each) }()
		}
		var err error
		for range threads {
			err = errors.Join(err, <-done)
		}
		if err := errors.Join(err, construct.PlainBarrier(w.in().Comm()), w.UnlockAll()); err != nil {
			return err
		}
		return expect("sum", mem[threads*3], threads*each*3)
	})
}

// thread puts numbers into an element of its own at each rank and sees them there.
func (w *Win) thread(thread, each int) error {
	at := int64(thread*w.Size() + w.Rank())
	for i := range each {
		for rank := range w.Size() {
			got := []int64{0}
			if err := errors.Join(Put(w, []int64{int64(i)}, rank, at), w.Flush(rank), Get(w, got, rank, at), w.FlushLocal(rank),
				expect("put", got[0], int64(i)), Accumulate(w, []int64{1}, rank, int64(4*w.Size()), Sum)); err != nil {
				return err
			}
		}
	}
	return w.FlushAll()
}

// A job can end with windows that nobody has freed.
func TestWindowNotFreed(t *testing.T) {
	layout{procs: 3}.run(t, func(_ *testing.T, c *Comm) error {
		w, err1 := WinCreate(c, make([]int64, 4), nil)
		other, err2 := c.WinAllocate(10, 1, nil)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		return errors.Join(w.Fence(0), Put(w, []int64{1}, (c.Rank()+1)%3, 0), w.Fence(0), other.LockAll(0))
	})
}
