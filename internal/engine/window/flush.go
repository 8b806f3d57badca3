package window

import (
	"errors"

	"github.com/openimpi/impi/core/rma"
	"github.com/openimpi/impi/internal/fastpath"
)

// Sync synchronises memory (MPI-4.1, 12.5.4). It also makes progress: programs call it in loops
// that wait for a store.
func (e *Epochs) Sync() error {
	if err := e.w.Check(); err != nil {
		return err
	}
	e.w.Process.Lock() // locking is also a memory barrier
	defer e.w.Process.Unlock()
	e.w.Process.Test()
	e.w.server.CarryOn()
	return e.w.Process.Failure
}

// Flush completes this member's operations at a rank: at this member, or with remote at the target
// as well (MPI-4.1, 12.5.4). A passive epoch of that rank must be open.
func (e *Epochs) Flush(rank int, remote bool) error {
	if err := e.w.Check(); err != nil {
		return err
	}
	none, err := e.member(rank)
	if none || err != nil {
		return err
	}
	if e.complete() {
		e.flushed()
		return nil
	}
	e.w.Process.Lock()
	defer e.w.Process.Unlock()
	if err := e.now().MayFlush(rank); err != nil {
		return err
	}
	if o := &e.w.origin; o.settled(rank) {
		o.idled()
		return nil
	}
	e.w.Process.Test()
	return e.w.origin.flush([]int{rank}, remote)
}

// complete reports whether operations are complete when their calls return, at all members, since
// all are locked and this proc does all operations by itself. It needs no lock: only the program's
// own calls change that, and it orders them.
func (e *Epochs) complete() bool {
	every, passive := e.epochs.Scope()
	return every && passive && e.w.memory.whole && e.w.byC.place == nil && e.w.Process.Survival == nil
}

// flushed is a flush where operations are complete.
func (e *Epochs) flushed() {
	if e.w.origin.idle.Add(1)%idleFlushes == 0 { // this is also the memory barrier
		e.w.Process.Lock()
		defer e.w.Process.Unlock()
		e.w.Process.Test()
	}
}

// idleFlushes is how many flushes that have nothing to wait for it takes until one makes progress,
// so that the others get on while this proc operates directly, in a loop, perhaps until one of them
// has done something.
const idleFlushes = 4 * fastpath.FlushesPerLook

func (o *Origin) idled() {
	if o.idle.Add(1)%idleFlushes == 0 || o.w.byC.due() {
		o.w.Process.Test()
	}
}

// settled reports whether a flush of a rank has nothing to do.
func (o *Origin) settled(rank int) bool {
	t := &o.targets[rank]
	return t.acked >= t.begun && len(t.open) == 0 && t.err == nil
}

// FlushAll is Flush for the operations at all ranks (MPI-4.1, 12.5.4).
func (e *Epochs) FlushAll(remote bool) error {
	if err := e.w.Check(); err != nil {
		return err
	}
	if e.complete() {
		e.flushed()
		return nil
	}
	e.w.Process.Lock()
	defer e.w.Process.Unlock()
	if err := e.now().MayFlush(-1); err != nil {
		return err
	}
	if o := &e.w.origin; len(o.dirty) == 0 {
		o.idled()
		return nil
	}
	e.w.Process.Test()
	return e.w.origin.flushAll(remote)
}

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

// flush completes the operations at some ranks (MPI-4.1, 12.5.4): at the origin, and with remote at
// the target too. The process is locked.
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

// drain waits until no operation at some ranks needs memory of this proc any more.
func (o *Origin) drain(ranks []int) error {
	for _, rank := range ranks {
		t := &o.targets[rank]
		if t.reap(); len(t.open) == 0 {
			continue
		}
		if err := o.w.server.until(awaited{}, func() (bool, error) {
			t.reap()
			return len(t.open) == 0, nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// fault returns, and clears, the first error of operations at the ranks that was not reported yet.
func (o *Origin) fault(ranks []int) (err error) {
	for _, rank := range ranks {
		if t := &o.targets[rank]; t.err != nil {
			err, t.err = errors.Join(err, t.err), nil
		}
	}
	return err
}
