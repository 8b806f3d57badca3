package mpi

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/openimpi/impi/internal/engine/collective"
	"github.com/openimpi/impi/internal/engine/construct"
)

// Ranks that fetch from one counter get all numbers, each once.
func TestFetchAndOp(t *testing.T) {
	const each = 20
	ofWindows(t, 4, 1, func(w *Win, mem []int64) error {
		if err := w.LockAll(0); err != nil {
			return err
		}
		mine := make([]int64, each)
		for i := range mine {
			if err := errors.Join(FetchAndOp(w, 1, &mine[i], 0, 0, Sum), w.Flush(0)); err != nil {
				return err
			}
			if i > 0 && mine[i] <= mine[i-1] {
				return fmt.Errorf("%d after %d", mine[i], mine[i-1])
			}
		}
		last := []int64{0}
		if err := errors.Join(construct.PlainBarrier(w.in().Comm()), FetchAndOp(w, 99, &last[0], 0, 0, NoOp), w.UnlockAll()); err != nil {
			return err
		}
		all := make([]int64, 4*each)
		if err := collective.AllgatherSlices(w.in().Comm(), mine, all); err != nil {
			return err
		}
		slices.Sort(all)
		for i, x := range all {
			if x != int64(i) {
				return fmt.Errorf("number %d is %d", i, x)
			}
		}
		return expect("the counter", last[0], int64(4*each))
	})
}

// CompareAndSwap makes a lock, under which a plain counter is changed.
func TestCompareAndSwap(t *testing.T) {
	const each = 5
	ofWindows(t, 3, 2, func(w *Win, mem []int64) error {
		if err := w.LockAll(0); err != nil {
			return err
		}
		me := int64(w.Rank()) + 1
		for range each {
			for was := []int64{-1}; was[0] != 0; {
				if err := errors.Join(CompareAndSwap(w, me, 0, &was[0], 0, 0), w.Flush(0)); err != nil {
					return err
				}
			}
			n := []int64{0}
			if err := errors.Join(Get(w, n, 0, 1), w.Flush(0), Put(w, []int64{n[0] + 1}, 0, 1), w.Flush(0)); err != nil {
				return err
			}
			was := []int64{0}
			if err := errors.Join(CompareAndSwap(w, 0, me, &was[0], 0, 0), w.Flush(0), expect("the lock's owner", was[0], me)); err != nil {
				return err
			}
		}
		if err := errors.Join(construct.PlainBarrier(w.in().Comm()), w.UnlockAll()); err != nil || w.Rank() != 0 {
			return err
		}
		return expect("the counter", mem[1], int64(3*each))
	})
}

// An exclusive lock protects what is got and put under it; it is given to everybody
// who asks, and Unlock completes what was done.
func TestLockProtects(t *testing.T) {
	const each = 10
	ofWindows(t, 4, 1, func(w *Win, mem []int64) error {
		for i := range each {
			n, kind := []int64{0}, LockExclusive
			if err := errors.Join(w.Lock(kind, 1, 0), Get(w, n, 1, 0), w.FlushLocal(1), Put(w, []int64{n[0] + 1}, 1, 0), w.Unlock(1)); err != nil {
				return err
			}
			if i%3 == 0 { // readers in between
				if err := errors.Join(w.Lock(LockShared, 1, 0), Get(w, n, 1, 0), w.Unlock(1)); err != nil {
					return err
				}
			}
		}
		if err := errors.Join(construct.PlainBarrier(w.in().Comm())); err != nil || w.Rank() != 1 {
			return err
		}
		return expect("the counter", mem[0], int64(4*each))
	})
}

// One proc's accumulates to an element happen in order, long ones before short ones
// that come after them.
func TestAccumulatesInOrder(t *testing.T) {
	const n = 3000
	ofWindows(t, 2, n, func(w *Win, mem []int64) error {
		long, old, was := make([]int64, n), make([]int64, n), []int64{0}
		for i := range long {
			long[i] = int64(i + 1)
		}
		other := 1 - w.Rank()
		if err := errors.Join(w.Fence(0),
			Accumulate(w, long, other, 0, Replace),
			Accumulate(w, []int64{1000}, other, n-1, Sum),
			FetchAndOp(w, 7, &was[0], other, n-1, Replace),
			GetAccumulate(w, long, old, other, 0, Sum),
			Accumulate(w, []int64{-1}, other, n-1, Min),
			w.Fence(0)); err != nil {
			return err
		}
		return errors.Join(expect("fetched", was[0], n+1000), expect("got", [2]int64{old[0], old[n-1]}, [2]int64{1, 7}),
			expect("memory", [2]int64{mem[0], mem[n-1]}, [2]int64{2, -1}))
	})
}

// What there is of operations and kinds: pairs, logical values, complex numbers.
func TestAccumulateKinds(t *testing.T) {
	orders(2, "native-be").run(t, func(_ *testing.T, c *Comm) error {
		return errors.Join(
			combined(c, []Pair[float64]{{Value: 2.5, Index: 7}, {Value: 1, Index: 3}}, []Pair[float64]{{Value: 2.5, Index: 4}, {Value: 0, Index: 9}}, MinLoc, []Pair[float64]{{Value: 2.5, Index: 4}, {Value: 0, Index: 9}}),
			combined(c, []bool{true, false}, []bool{true, true}, LXor, []bool{false, true}),
			combined(c, []complex128{1i, 2}, []complex128{1i, 3i}, Prod, []complex128{-1, 6i}),
			combined(c, []uint8{12, 255}, []uint8{10, 1}, BAnd, []uint8{8, 1}),
			combined(c, []float32{1, 2}, []float32{0.5, -2}, Sum, []float32{1.5, 0}))
	})
}

// combined accumulates into the other rank's elements.
func combined[T interface {
	Type
	comparable
}](c *Comm, have, give []T, op Op, want []T) error {
	mem := slices.Clone(have)
	w, err := WinCreate(c, mem, nil)
	if err != nil {
		return err
	}
	old := make([]T, len(have))
	if err := errors.Join(w.Fence(0), GetAccumulate(w, give, old, 1-c.Rank(), 0, op), w.Fence(0), w.Free()); err != nil {
		return err
	}
	if !slices.Equal(mem, want) || !slices.Equal(old, have) {
		return fmt.Errorf("%v of %v and %v: %v, before %v", op, have, give, mem, old)
	}
	return nil
}

// Goroutines of a proc that has locked all members count as procs do, though they take no lock of
// the process's.
func TestAtomicAmongGoroutines(t *testing.T) {
	const goroutines, each = 3, 200
	layout{procs: 2}.run(t, func(_ *testing.T, c *Comm) error {
		w, err := c.WinAllocate(8, 8, nil)
		if err != nil {
			return err
		}
		if err := w.LockAll(0); err != nil {
			return err
		}
		done := make(chan error)
		for range goroutines {
			go func() {
				var err error
				was := []int64{0}
				for range each {
					err = errors.Join(err, FetchAndOp(w, 1, &was[0], 0, 0, Sum), w.Accumulate(Of([]int64{1}), Target{0, 0, 1, Of(was).Datatype()}, Sum), w.Flush(0))
				}
				done <- err
			}()
		}
		for range goroutines {
			err = errors.Join(err, <-done)
		}
		all := []int64{0}
		err = errors.Join(err, construct.PlainBarrier(c.in()), FetchAndOp(w, 0, &all[0], 0, 0, NoOp), expect("the counter", all[0], int64(2*2*goroutines*each)))
		return errors.Join(err, construct.PlainBarrier(c.in()), w.UnlockAll(), w.Free())
	})
}

// Operations fail once the job is over, those that take no lock as well.
func TestNoOperationAfterTheJob(t *testing.T) {
	procs := layout{procs: 1}.start(t)
	c := (*Comm)(procs[0].Comms.World)
	w, err := c.WinAllocate(8, 8, nil)
	if err := errors.Join(err, w.LockAll(0)); err != nil {
		t.Fatal(err)
	}
	b := Of([]int64{1})
	at := Target{0, 0, 1, b.Datatype()}
	if err := errors.Join(w.Put(b, at), w.Get(b, at), w.Accumulate(b, at, Sum)); err != nil {
		t.Fatal(err)
	}
	procs[0].Lock()
	procs[0].SetFailed(errors.New("for the test"))
	procs[0].Unlock()
	for what, err := range map[string]error{"Put": w.Put(b, at), "Get": w.Get(b, at), "Accumulate": w.Accumulate(b, at, Sum)} {
		if !errors.Is(err, ErrJobOver) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
