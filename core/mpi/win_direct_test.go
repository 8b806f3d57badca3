package mpi

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/engine/construct"
)

// Operations in allocated memory are complete although their target calls nothing, in each kind of
// epoch and with items that have gaps.
func TestOperationsNeedNoTarget(t *testing.T) {
	var begun, done atomic.Bool
	layout{procs: 2}.run(t, func(_ *testing.T, c *Comm) error {
		w, err := c.WinAllocate(80, 8, nil)
		if err != nil {
			return err
		}
		mem := numbersOf(w)
		// Who has its locks may compute only when the other one, whom it has to answer, has them too.
		if err := errors.Join(w.LockAll(0), construct.PlainBarrier(c.in())); err != nil {
			return err
		}
		if c.Rank() == 1 {
			mem[5] = 50
			begun.Store(true)
			for !done.Load() { // it computes
				runtime.Gosched()
			}
		} else {
			for !begun.Load() {
				runtime.Gosched()
			}
			err = errors.Join(awayFrom(w, 1), w.Flush(1))
			done.Store(true)
		}
		if err := errors.Join(err, construct.PlainBarrier(c.in()), w.UnlockAll()); err != nil {
			return err
		}
		if c.Rank() == 1 {
			err = expect("the memory", [10]int64(mem), [10]int64{12, 2, 7, 0, 8, 50, 9, 100, 0, 0})
		}
		return errors.Join(err, w.Free())
	})
}

// awayFrom operates on a rank.
func awayFrom(w *Win, rank int) error {
	got, was, gaps := []int64{0}, []int64{0, 0}, []int64{0, 0, 0}
	every, err := TypeVector(3, 1, 2, datatype.Basic(datatype.Int64))
	if err == nil {
		err = every.Commit()
	}
	if err != nil {
		return err
	}
	if err := errors.Join(
		Put(w, []int64{2, 2}, rank, 0),
		Accumulate(w, []int64{10}, rank, 0, Sum),
		Get(w, got, rank, 5),
		FetchAndOp(w, 1, &was[0], rank, 7, Sum), CompareAndSwap(w, 100, 1, &was[1], rank, 7),
		w.Put(Of([]int64{7, 8, 9}), Target{rank, 2, 1, every}),
		w.Get(Of(gaps), Target{rank, 2, 1, every}),
	); err != nil {
		return err
	}
	r, err := w.Rput(Of([]int64{100}), Target{rank, 7, 1, datatype.Basic(datatype.Int64)})
	if err != nil {
		return err
	}
	if _, err := r.Wait(); err != nil {
		return err
	}
	return errors.Join(expect("got", got[0], int64(50)), expect("was there", [2]int64(was), [2]int64{0, 1}), expect("with gaps", [3]int64(gaps), [3]int64{7, 8, 9}))
}

// Accumulates of procs of the target's machine, which they do themselves, and of others, which the
// target does, are atomic with each other.
func TestAtomicOverMachines(t *testing.T) {
	const each = 300
	layout{procs: 4, client: func(r int) int { return r / 2 }}.run(t, func(_ *testing.T, c *Comm) error {
		w, err := c.WinAllocate(16, 8, nil)
		if err != nil {
			return err
		}
		if err := w.LockAll(0); err != nil {
			return err
		}
		for range each {
			if err := Accumulate(w, []int64{1, -1}, 1, 0, Sum); err != nil {
				return err
			}
		}
		if err := errors.Join(w.UnlockAll(), construct.PlainBarrier(c.in())); err != nil {
			return err
		}
		if c.Rank() == 1 {
			err = expect("the sums", [2]int64(numbersOf(w)), [2]int64{4 * each, -4 * each})
		}
		return errors.Join(err, w.Free())
	})
}

// A one-sided operation in memory that this proc can access allocates nothing.
func TestDirectOperationsAllocateNothing(t *testing.T) {
	for _, procs := range []int{1, 2} {
		layout{procs: procs}.run(t, func(_ *testing.T, c *Comm) error {
			w, err := c.WinAllocate(4096, 1, nil)
			if err != nil {
				return err
			}
			if err := w.LockAll(0); err != nil {
				return err
			}
			if c.Rank() == 0 {
				err = allocateNothing(w, procs-1)
			}
			return errors.Join(err, construct.PlainBarrier(c.in()), w.UnlockAll(), w.Free())
		})
	}
}

func allocateNothing(w *Win, rank int) error {
	b, in := Of(make([]int64, 512)), Of(make([]int64, 512))
	at := Target{rank, 0, 512, datatype.Basic(datatype.Int64)}
	one, other := Of(make([]int64, 1)), Of(make([]int64, 1))
	var failed error
	round := func() {
		failed = errors.Join(failed, w.Put(b, at), w.Get(in, at), w.Accumulate(b, at, Sum), w.GetAccumulate(b, in, at, Sum),
			w.FetchAndOp(one, other, rank, 0, Sum), w.FetchAndOp(Buffer{}, other, rank, 0, NoOp), w.CompareAndSwap(one, one, other, rank, 0), w.Flush(rank))
	}
	round()
	if a := testing.AllocsPerRun(200, round); a > 0 {
		failed = errors.Join(failed, fmt.Errorf("%v allocations", a))
	}
	return failed
}

// Operations on elements of one datatype do what those on items do: they move fewer than there is
// room for, fetch into the memory that they combine, and touch nothing outside the window or an
// epoch.
func TestOperationsOnElements(t *testing.T) {
	layout{procs: 2}.run(t, func(_ *testing.T, c *Comm) error {
		w, err := c.WinAllocate(80, 8, nil)
		if err != nil {
			return err
		}
		if err := w.LockAll(0); err != nil {
			return err
		}
		if c.Rank() == 0 {
			err = errors.Join(onElements(w, 1), onElements(w, 0))
		}
		err = errors.Join(err, construct.PlainBarrier(c.in()), w.UnlockAll(),
			expect("the memory", [10]int64(numbersOf(w)), [10]int64{1, 2, 3, 0, 0, 0, 0, 0, 12, 5}))
		for name, f := range map[string]func() error{
			"put": func() error { return Put(w, []int64{7}, 1, 0) }, "get": func() error { return Get(w, []int64{7}, 1, 0) },
			"accumulate": func() error { return Accumulate(w, []int64{7}, 1, 0, Sum) },
			"swap":       func() error { return CompareAndSwap(w, 7, 1, new(int64), 1, 0) },
		} {
			if e := f(); ErrorClass(e) != mpierr.RMASync {
				err = errors.Join(err, fmt.Errorf("%s without an epoch: %v", name, e))
			}
		}
		return errors.Join(err, construct.PlainBarrier(c.in()), w.Free())
	})
}

func onElements(w *Win, rank int) error {
	ints := datatype.Basic(datatype.Int64)
	got, place, was := []int64{7, 7, 7, 7}, []int64{10}, int64(0)
	err := errors.Join(w.Put(Of([]int64{1, 2, 3}), Target{rank, 0, 5, ints}), w.Get(Of(got), Target{rank, 1, 2, ints}), Put(w, []int64{2}, rank, 8))
	err = errors.Join(err, expect("got", [4]int64(got), [4]int64{2, 3, 7, 7}), w.FetchAndOp(Of(place), Of(place), rank, 8, Sum))
	err = errors.Join(err, expect("fetched into what was added", place[0], 2), w.FetchAndOp(Buffer{}, Of(place), rank, 8, NoOp))
	err = errors.Join(err, expect("fetched", place[0], 12), CompareAndSwap(w, 6, 1, &was, rank, 9))
	err = errors.Join(err, expect("was there", was, 0), CompareAndSwap(w, 5, 0, &was, rank, 9))
	err = errors.Join(err, expect("was still there", was, 0))
	for _, to := range []Target{{rank, 9, 2, ints}, {rank, 10, 1, ints}, {rank, 1 << 61, 1, ints}, {rank, 0, 1<<61 + 1, ints}} {
		if e := w.Put(Of([]int64{9}), to); e == nil {
			err = errors.Join(err, fmt.Errorf("a put of %d items at %d succeeds", to.Count, to.Disp))
		}
	}
	return err
}

// A window of one member has memory, too, and that of a member without any has none.
func TestWindowsAlone(t *testing.T) {
	layout{procs: 1}.run(t, func(_ *testing.T, c *Comm) error {
		for name, allocate := range map[string]func(size int64, unit int, info *Info) (*Win, error){"allocated": c.WinAllocate, "shared": c.WinAllocateShared} {
			for _, size := range []int64{0, 80} {
				w, err := allocate(size, 8, nil)
				if err != nil {
					return err
				}
				if err := errors.Join(expect(name, int64(len(w.Memory())), size), w.LockAll(0)); err != nil {
					return err
				}
				if size > 0 {
					got := []int64{0}
					if err := errors.Join(Put(w, []int64{7}, 0, 9), Get(w, got, 0, 9), w.Flush(0), expect(name, got[0], int64(7))); err != nil {
						return err
					}
				}
				if err := errors.Join(w.UnlockAll(), w.Free()); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
