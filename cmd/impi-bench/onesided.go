package main

import (
	"maps"
	"slices"

	"github.com/openimpi/impi/core/mpi"
)

// onesided does an operation n times. Of the pairs the even ranks do it, each at its partner, and
// the odd ones wait; all do what is collective.
func (w *worker) onesided(bench string, n int64) error {
	switch bench {
	case "win_create":
		return w.windowsMade(n)
	case "fence":
		return w.fences(n)
	}
	if err := w.needWindow(bench); err != nil {
		return err
	}
	for i := int64(0); w.rank%2 == 0 && i < n; i++ {
		if err := w.access(bench); err != nil {
			return err
		}
		if err := w.win.Flush(w.peer); err != nil {
			return err
		}
	}
	return mpi.Barrier(w.world)
}

// The target datatypes.
var (
	bytesType   = mpi.Of([]byte(nil)).Datatype()
	numbersType = mpi.Of([]float64(nil)).Datatype()
)

func (w *worker) access(bench string) error {
	at := mpi.Target{Rank: w.peer, Count: w.size, Type: bytesType}
	switch bench {
	case "put":
		return w.win.Put(mpi.Of(w.out[:w.size]), at)
	case "get":
		return w.win.Get(mpi.Of(w.in[:w.size]), at)
	case "accumulate":
		at.Count, at.Type = w.size/8, numbersType
		return w.win.Accumulate(mpi.Of(w.numbers(0)), at, mpi.Sum)
	case "fetch_and_op":
		return w.win.FetchAndOp(mpi.Of(w.words[:1]), mpi.Of(w.words[1:2]), w.peer, 0, mpi.Sum)
	default:
		return w.win.CompareAndSwap(mpi.Of(w.words[:1]), mpi.Of(w.words[2:3]), mpi.Of(w.words[1:2]), w.peer, 0)
	}
}

// fences does n puts by each even rank, each between two fences.
func (w *worker) fences(n int64) error {
	if err := w.needWindow("fence"); err != nil {
		return err
	}
	if err := w.win.Fence(0); err != nil {
		return err
	}
	for i := int64(0); i < n; i++ {
		if w.rank%2 == 0 {
			if err := w.access("put"); err != nil {
				return err
			}
		}
		if err := w.win.Fence(0); err != nil {
			return err
		}
	}
	return nil
}

func (w *worker) windowsMade(n int64) error {
	for i := int64(0); i < n; i++ {
		win, err := mpi.WinCreate(w.world, w.words[:], nil)
		if err != nil {
			return err
		}
		if err := win.Free(); err != nil {
			return err
		}
	}
	return nil
}

// needWindow makes the window that an operation needs, if there is none of the size. All ranks are
// locked once, for as long as the window lives.
func (w *worker) needWindow(bench string) (err error) {
	if w.win != nil || bench == "win_create" || !slices.Contains(onesidedNames, bench) {
		return nil
	}
	locked := bench != "fence"
	if w.win, err = w.world.WinAllocate(int64(max(w.size, 8)), 1, nil); err != nil {
		return err
	}
	w.locked = locked
	w.buffers[w.size] = w.buffer
	if locked {
		return w.win.LockAll(0)
	}
	return nil
}

// freeWindow frees the windows of all sizes, in the same order everywhere.
func (w *worker) freeWindow() error {
	for _, size := range slices.Sorted(maps.Keys(w.buffers)) {
		b := w.buffers[size]
		if b.win == nil {
			continue
		}
		if b.locked {
			if err := b.win.UnlockAll(); err != nil {
				return err
			}
		}
		if err := b.win.Free(); err != nil {
			return err
		}
		b.win = nil
		w.buffers[size] = b
	}
	return nil
}
