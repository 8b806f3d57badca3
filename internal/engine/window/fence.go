package window

import (
	"errors"

	"github.com/openimpi/impi/core/rma"
	"github.com/openimpi/impi/internal/engine/construct"
	"github.com/openimpi/impi/internal/engine/proc"
)

// Assert is what a program promises when it opens or closes an epoch; several are combined by or.
// They are checked. NoSucceed opens no epoch and NoCheck takes no lock; the others change nothing.
type Assert = rma.Assert

// The assertions, with the values of the MPI ABI: MPI_MODE_NOCHECK and so on.
const (
	NoCheck   = rma.NoCheck
	NoPrecede = rma.NoPrecede
	NoPut     = rma.NoPut
	NoStore   = rma.NoStore
	NoSucceed = rma.NoSucceed
)

func (w *Win) Fence(assert Assert) error { return w.failed("Fence", w.fence(assert)) }

// fence completes what this member has begun, at its targets, and then meets the
// others: after that nothing is under way, and nobody can have begun anything of
// the next epoch here. It takes no numbers of operations, whose vectors would be as
// long as the window has members.
func (w *Win) fence(assert Assert) error {
	if err := w.check(); err != nil {
		return err
	}
	if err := assert.Check(rma.FenceAsserts); err != nil {
		return err
	}
	p := w.Process
	p.Lock()
	if err := w.epochs.MayFence(); err != nil {
		p.Unlock()
		return err
	}
	err := w.flushAll(true)
	p.Unlock()
	if e := construct.Meet(w.c); e != nil {
		return errors.Join(err, e)
	}
	p.Lock()
	defer p.Unlock()
	w.epochs.Fence(assert&rma.NoSucceed == 0)
	return err
}

func (w *Win) Post(group *proc.Group, assert Assert) error {
	return w.failed("Post", w.post(group, assert))
}

func (w *Win) post(group *proc.Group, assert Assert) error {
	ranks, err := w.ranks(group, assert, rma.PostAsserts)
	if err != nil {
		return err
	}
	w.Process.Lock()
	defer w.Process.Unlock()
	if err := w.epochs.Post(ranks); err != nil {
		return err
	}
	w.notify(ranks, rma.Post)
	return nil
}

func (w *Win) Start(group *proc.Group, assert Assert) error {
	return w.failed("Start", w.start(group, assert))
}

func (w *Win) start(group *proc.Group, assert Assert) error {
	ranks, err := w.ranks(group, assert, rma.StartAsserts)
	if err != nil {
		return err
	}
	w.Process.Lock()
	defer w.Process.Unlock()
	if err := w.epochs.Start(ranks); err != nil {
		return err
	}
	if err := w.await(&w.posts, ranks); err != nil {
		w.epochs.Complete()
		return err
	}
	return nil
}

func (w *Win) Complete() error { return w.failed("Complete", w.complete()) }

func (w *Win) complete() error {
	if err := w.check(); err != nil {
		return err
	}
	w.Process.Lock()
	defer w.Process.Unlock()
	ranks, err := w.epochs.Started()
	if err != nil {
		return err
	}
	err = w.flushAll(w.flavor == WinFlavorDynamic) // whose targets alone know of errors
	w.notify(ranks, rma.Complete)
	w.epochs.Complete()
	return err
}

func (w *Win) Wait() error { return w.failed("Win.Wait", w.wait()) }

func (w *Win) wait() error {
	if err := w.check(); err != nil {
		return err
	}
	w.Process.Lock()
	defer w.Process.Unlock()
	ranks, err := w.epochs.Posted()
	if err == nil {
		err = w.await(&w.completes, ranks)
	}
	if err == nil {
		w.epochs.Wait()
	}
	return err
}

func (w *Win) Test() (done bool, err error) {
	done, err = w.test()
	return done, w.failed("Win.Test", err)
}

func (w *Win) test() (done bool, err error) {
	if err := w.check(); err != nil {
		return false, err
	}
	p := w.Process
	p.Lock()
	defer p.Unlock()
	ranks, err := w.epochs.Posted()
	if err != nil {
		return false, err
	}
	p.Test()
	w.CarryOn()
	if done = w.completes.Take(ranks); done {
		w.epochs.Wait()
		return true, nil
	}
	return false, w.gone(&w.completes, ranks)
}

// ranks are those of a group's members, in a call that takes some assertions.
func (w *Win) ranks(group *proc.Group, assert, allowed Assert) (ranks []int, err error) {
	if err := w.check(); err != nil {
		return nil, err
	}
	if err := assert.Check(allowed); err != nil {
		return nil, err
	}
	if err := construct.Holds(w.c, group); err != nil {
		return nil, err
	}
	for rank := range group.Members().Ranks(w.c.Comm.Group()).All() {
		ranks = append(ranks, int(rank))
	}
	return ranks, nil
}

// notify tells ranks something that they do not answer, and wait for.
func (w *Win) notify(ranks []int, kind rma.Kind) {
	defer w.Process.FlushAll()
	for _, rank := range ranks {
		a := w.ask(rank, rma.Header{Kind: kind}, parts{})
		w.enlist(&w.targets[rank], a)
	}
}

// await takes a notice of each rank, waiting for them.
func (w *Win) await(notices *rma.Arrivals, ranks []int) error {
	return w.until(func() (bool, error) {
		if notices.Take(ranks) {
			return true, nil
		}
		return false, w.gone(notices, ranks)
	})
}

// gone tells whether a rank that has not given a notice never will.
func (w *Win) gone(notices *rma.Arrivals, ranks []int) error {
	for _, rank := range ranks {
		if _, missing := notices.Missing([]int{rank}); !missing {
			continue
		}
		if err := w.Process.Eng.Down(w.peer(rank)); err != nil {
			return err
		}
	}
	return w.Process.Failure
}
