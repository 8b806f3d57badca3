package window

import (
	"errors"

	"github.com/openimpi/impi/core/rma"
)

func (w *Win) Flush(rank int) error { return w.failed("Flush", w.flushOne(rank, true)) }

func (w *Win) FlushLocal(rank int) error { return w.failed("FlushLocal", w.flushOne(rank, false)) }

func (w *Win) FlushAll() error { return w.failed("FlushAll", w.flushEach(true)) }

func (w *Win) FlushLocalAll() error { return w.failed("FlushLocalAll", w.flushEach(false)) }

func (w *Win) Sync() error { return w.failed("Sync", w.sync()) }

// sync also makes progress: programs call it in loops that wait for a store.
func (w *Win) sync() error {
	if err := w.check(); err != nil {
		return err
	}
	w.Process.Lock() // which is a fence for memory, too
	defer w.Process.Unlock()
	w.Process.Test()
	w.CarryOn()
	return w.Process.Failure
}

func (w *Win) flushOne(rank int, remote bool) error {
	if err := w.check(); err != nil {
		return err
	}
	none, err := w.member(rank)
	if none || err != nil {
		return err
	}
	w.Process.Lock()
	defer w.Process.Unlock()
	if err := w.epochs.MayFlush(rank); err != nil {
		return err
	}
	w.Process.Test() // for the others, who wait while this proc works at itself
	return w.flush([]int{rank}, remote)
}

func (w *Win) flushEach(remote bool) error {
	if err := w.check(); err != nil {
		return err
	}
	w.Process.Lock()
	defer w.Process.Unlock()
	if err := w.epochs.MayFlush(-1); err != nil {
		return err
	}
	w.Process.Test()
	return w.flushAll(remote)
}

// flushAll is flush of all ranks that operations have gone to.
func (w *Win) flushAll(remote bool) error {
	ranks := w.dirty
	if remote {
		w.dirty = nil
		for _, rank := range ranks {
			w.targets[rank].listed = false
		}
	}
	return w.flush(ranks, remote)
}

// flush completes the operations at some ranks here, and there too if remote. The
// process is locked.
func (w *Win) flush(ranks []int, remote bool) (err error) {
	if remote {
		var unacked []int
		for _, rank := range ranks {
			if t := &w.targets[rank]; t.acked < t.begun {
				unacked = append(unacked, rank)
			}
		}
		if len(unacked) > 0 {
			err = w.askAll(unacked, rma.Header{Kind: rma.Flush})
		}
	}
	return errors.Join(err, w.drain(ranks), w.fault(ranks))
}

// drain waits until nothing that was begun at some ranks needs memory here.
func (w *Win) drain(ranks []int) error {
	for _, rank := range ranks {
		t := &w.targets[rank]
		if t.reap(); len(t.open) == 0 {
			continue
		}
		if err := w.until(func() (bool, error) {
			t.reap()
			return len(t.open) == 0, nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// fault gives the first errors of the operations at some ranks that nothing was
// said of.
func (w *Win) fault(ranks []int) (err error) {
	for _, rank := range ranks {
		if t := &w.targets[rank]; t.err != nil {
			err, t.err = errors.Join(err, t.err), nil
		}
	}
	return err
}
