package mpi

import (
	"errors"
	"fmt"
	"testing"

	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/engine/construct"
)

// Requests of operations are complete at this side when they say so, in any way of
// waiting, and everywhere after a flush.
func TestWindowRequests(t *testing.T) {
	ofDistantWindows(t, 2, 1000, func(w *Win, mem []int64) error {
		other := 1 - w.Rank()
		long, got, old := make([]int64, 900), make([]int64, 900), make([]int64, 2)
		for i := range long {
			long[i] = int64(i + w.Rank())
		}
		if err := w.LockAll(NoCheck); err != nil {
			return err
		}
		put, err1 := w.Rput(Of(long), elementsAt(long, other, 0))
		add, err2 := w.Raccumulate(Of(long[:2]), elementsAt(long[:2], other, 950), Sum)
		if err := errors.Join(err1, err2, Waitall([]Request{put, add}, nil), w.Flush(other)); err != nil {
			return err
		}
		get, err1 := w.Rget(Of(got), elementsAt(got, other, 0))
		more, err2 := w.RgetAccumulate(Of(long[:2]), Of(old), elementsAt(old, other, 950), Sum)
		_, err3 := more.Wait()
		if err := errors.Join(err1, err2, err3, complete(&get), expect("null", get.Null() && more.Null(), true)); err != nil {
			return err
		}
		for i := range got {
			if got[i] != long[i] {
				return fmt.Errorf("element %d is %d", i, got[i])
			}
		}
		nowhere, err1 := w.Rget(Of(got), elementsAt(got, ProcNull, 0))
		_, err2 = nowhere.Wait()
		forgotten, err3 := w.Rput(Of(long[:1]), elementsAt(long[:1], other, 970))
		again := forgotten
		if err := errors.Join(err1, err2, err3, forgotten.Free(), classed("through a copy", complete(&again), mpierr.Request), w.UnlockAll(), construct.PlainBarrier(w.in().Comm())); err != nil {
			return err
		}
		return errors.Join(expect("before", old[1], long[1]), expect("sum", mem[951], 2*int64(1+other)), expect("freed", mem[970], int64(other)))
	})
}

// Ranks that lock their own memory in a loop, and wait for nothing else, let others have
// the lock.
func TestLockOfSelfInALoop(t *testing.T) {
	for name, lock := range map[string]func(w *Win) (unlock func() error, err error){
		"exclusive": func(w *Win) (func() error, error) {
			return func() error { return w.Unlock(w.Rank()) }, w.Lock(LockExclusive, w.Rank(), 0)
		},
		"all, shared": func(w *Win) (func() error, error) { return w.UnlockAll, w.LockAll(0) },
	} {
		t.Run(name, func(t *testing.T) {
			ofWindows(t, 2, 2, func(w *Win, mem []int64) error {
				if w.Rank() == 1 {
					if err := errors.Join(w.Lock(LockExclusive, 0, 0), Put(w, []int64{7}, 0, 1), w.Unlock(0)); err != nil {
						return err
					}
				}
				got := []int64{0}
				for w.Rank() == 0 && got[0] != 7 {
					unlock, err := lock(w)
					if err := errors.Join(err, Get(w, got, 0, 1), unlock()); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
}

// A flush of one rank does not need another that makes no progress: rank 2 waits
// for a message that is sent after it.
func TestFlushOfOneRank(t *testing.T) {
	layout{procs: 3, ackMark: 1, hiWater: 2}.run(t, func(_ *testing.T, c *Comm) error {
		mem := make([]int64, 100_000)
		w, err := WinCreate(c, mem, nil)
		if err != nil {
			return err
		}
		if err := w.LockAll(0); err != nil {
			return err
		}
		switch c.Rank() {
		case 0:
			if err := errors.Join(Put(w, make([]int64, 90_000), 2, 0), Put(w, []int64{5}, 1, 0), w.Flush(1), w.FlushLocal(1),
				Send(c, []byte{1}, 1, 0), w.FlushLocalAll(), w.FlushAll()); err != nil {
				return err
			}
		case 1:
			if _, err := Recv(c, []byte{0}, 0, 0); err != nil {
				return err
			}
			if err := expect("put", mem[0], 5); err != nil {
				return err
			}
		}
		return errors.Join(w.UnlockAll(), w.Free())
	})
}

// Whoever takes memory that another has locked, without a lock of its own, gets RMA_CONFLICT if the
// target does the operation: at once where
// something is to come back, else when it flushes. Nothing is changed.
func TestLockConflict(t *testing.T) {
	ofDistantWindows(t, 3, 1000, func(w *Win, mem []int64) error {
		if w.Rank() == 1 {
			if err := w.Lock(LockExclusive, 0, 0); err != nil {
				return err
			}
		}
		if err := construct.PlainBarrier(w.in().Comm()); err != nil {
			return err
		}
		if w.Rank() == 2 {
			if err := errors.Join(w.Lock(LockShared, 0, NoCheck),
				Put(w, []int64{1}, 0, 0), classed("put", w.Flush(0), mpierr.RMAConflict), w.Flush(0),
				Put(w, make([]int64, 900), 0, 0), classed("long put", w.Flush(0), mpierr.RMAConflict),
				Accumulate(w, []int64{1}, 0, 0, Sum), classed("accumulate", w.Flush(0), mpierr.RMAConflict),
				Get(w, []int64{1}, 0, 0), classed("get", w.Unlock(0), mpierr.RMAConflict)); err != nil {
				return err
			}
		}
		if err := construct.PlainBarrier(w.in().Comm()); err != nil {
			return err
		}
		if w.Rank() == 1 {
			if err := errors.Join(Put(w, []int64{7}, 0, 1), w.Unlock(0)); err != nil {
				return err
			}
		}
		if err := construct.PlainBarrier(w.in().Comm()); err != nil || w.Rank() != 0 {
			return err
		}
		return expect("memory", [2]int64(mem[:2]), [2]int64{0, 7})
	})
}

// Operations at this proc itself need nobody else, of all kinds and lengths.
func TestWindowOfSelf(t *testing.T) {
	ofWindows(t, 1, 1000, func(w *Win, mem []int64) error {
		long, got, old := make([]int64, 800), make([]int64, 800), make([]int64, 800)
		for i := range long {
			long[i] = int64(i)
		}
		was := []int64{0}
		if err := errors.Join(w.Lock(LockExclusive, 0, 0), Put(w, long, 0, 0), w.Flush(0), GetAccumulate(w, long, old, 0, 0, Sum),
			FetchAndOp(w, 3, &was[0], 0, 900, Sum), w.Flush(0), Get(w, got, 0, 0), w.Unlock(0)); err != nil {
			return err
		}
		return errors.Join(expect("got", got[700], 1400), expect("old", old[700], 700), expect("memory", mem[900], 3))
	})
}
