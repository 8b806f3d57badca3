package window

import (
	"errors"

	"github.com/openimpi/impi/core/rma"
)

// Sync also makes progress: programs call it in loops that wait for a store.
func (e *Epochs) Sync() error {
	if err := e.w.Check(); err != nil {
		return err
	}
	e.w.Process.Lock() // which is a fence for memory, too
	defer e.w.Process.Unlock()
	e.w.Process.Test()
	e.w.server.CarryOn()
	return e.w.Process.Failure
}

func (e *Epochs) Flush(rank int, remote bool) error {
	if err := e.w.Check(); err != nil {
		return err
	}
	none, err := e.member(rank)
	if none || err != nil {
		return err
	}
	e.w.Process.Lock()
	defer e.w.Process.Unlock()
	if err := e.epochs.MayFlush(rank); err != nil {
		return err
	}
	e.w.Process.Test() // for the others, who wait while this proc works at itself
	return e.w.origin.flush([]int{rank}, remote)
}

func (e *Epochs) FlushAll(remote bool) error {
	if err := e.w.Check(); err != nil {
		return err
	}
	e.w.Process.Lock()
	defer e.w.Process.Unlock()
	if err := e.epochs.MayFlush(-1); err != nil {
		return err
	}
	e.w.Process.Test()
	return e.w.origin.flushAll(remote)
}

// flushAll is flush for all ranks that operations have gone to.
func (o *Origin) flushAll(remote bool) error {
	ranks := o.dirty
	if remote {
		o.dirty = nil
		for _, rank := range ranks {
			o.targets[rank].listed = false
		}
	}
	return o.flush(ranks, remote)
}

// flush completes the operations at some ranks here, and there too if remote. The
// process is locked.
func (o *Origin) flush(ranks []int, remote bool) (err error) {
	if remote {
		var unacked []int
		for _, rank := range ranks {
			if t := &o.targets[rank]; t.acked < t.begun {
				unacked = append(unacked, rank)
			}
		}
		if len(unacked) > 0 {
			err = o.askAll(unacked, rma.Header{Kind: rma.Flush})
		}
	}
	return errors.Join(err, o.drain(ranks), o.fault(ranks))
}

// drain waits until nothing that was begun at some ranks needs memory here.
func (o *Origin) drain(ranks []int) error {
	for _, rank := range ranks {
		t := &o.targets[rank]
		if t.reap(); len(t.open) == 0 {
			continue
		}
		if err := o.w.server.until(func() (bool, error) {
			t.reap()
			return len(t.open) == 0, nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// fault returns the first error at each rank that was not reported yet.
func (o *Origin) fault(ranks []int) (err error) {
	for _, rank := range ranks {
		if t := &o.targets[rank]; t.err != nil {
			err, t.err = errors.Join(err, t.err), nil
		}
	}
	return err
}
