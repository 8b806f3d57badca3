package mpi

import (
	"errors"

	"github.com/openimpi/impi/core/rma"
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

// Fence ends the epochs that the last one opened, and opens others unless NoSucceed
// is asserted. All operations that any member has begun are complete everywhere
// then. All members call it.
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
	p := w.p
	p.lock()
	if err := w.epochs.MayFence(); err != nil {
		p.unlock()
		return err
	}
	err := w.flushAll(true)
	p.unlock()
	if e := w.c.meet(); e != nil {
		return errors.Join(err, e)
	}
	p.lock()
	defer p.unlock()
	w.epochs.Fence(assert&rma.NoSucceed == 0)
	return err
}

// Post opens an exposure epoch to the members of a group, whose Start waits for it.
func (w *Win) Post(group *Group, assert Assert) error {
	return w.failed("Post", w.post(group, assert))
}

func (w *Win) post(group *Group, assert Assert) error {
	ranks, err := w.ranks(group, assert, rma.PostAsserts)
	if err != nil {
		return err
	}
	w.p.lock()
	defer w.p.unlock()
	if err := w.epochs.Post(ranks); err != nil {
		return err
	}
	w.notify(ranks, rma.Post)
	return nil
}

// Start opens an access epoch to the members of a group. It blocks until all of
// them have called Post.
func (w *Win) Start(group *Group, assert Assert) error {
	return w.failed("Start", w.start(group, assert))
}

func (w *Win) start(group *Group, assert Assert) error {
	ranks, err := w.ranks(group, assert, rma.StartAsserts)
	if err != nil {
		return err
	}
	w.p.lock()
	defer w.p.unlock()
	if err := w.epochs.Start(ranks); err != nil {
		return err
	}
	if err := w.await(&w.posts, ranks); err != nil {
		w.epochs.Complete()
		return err
	}
	return nil
}

// Complete ends the epoch that Start has opened. What it takes from and gets into
// can be used again; the targets have everything once their Wait returns.
func (w *Win) Complete() error { return w.failed("Complete", w.complete()) }

func (w *Win) complete() error {
	if err := w.check(); err != nil {
		return err
	}
	w.p.lock()
	defer w.p.unlock()
	ranks, err := w.epochs.Started()
	if err != nil {
		return err
	}
	err = w.flushAll(w.flavor == WinFlavorDynamic) // whose targets alone know of errors
	w.notify(ranks, rma.Complete)
	w.epochs.Complete()
	return err
}

// Wait ends the epoch that Post has opened. It blocks until all of the group have
// called Complete and all of their operations are done.
func (w *Win) Wait() error { return w.failed("Win.Wait", w.wait()) }

func (w *Win) wait() error {
	if err := w.check(); err != nil {
		return err
	}
	w.p.lock()
	defer w.p.unlock()
	ranks, err := w.epochs.Posted()
	if err == nil {
		err = w.await(&w.completes, ranks)
	}
	if err == nil {
		w.epochs.Wait()
	}
	return err
}

// Test is Wait that does not block: done tells whether the epoch is over.
func (w *Win) Test() (done bool, err error) {
	done, err = w.test()
	return done, w.failed("Win.Test", err)
}

func (w *Win) test() (done bool, err error) {
	if err := w.check(); err != nil {
		return false, err
	}
	p := w.p
	p.lock()
	defer p.unlock()
	ranks, err := w.epochs.Posted()
	if err != nil {
		return false, err
	}
	p.test()
	w.carryOn()
	if done = w.completes.Take(ranks); done {
		w.epochs.Wait()
		return true, nil
	}
	return false, w.gone(&w.completes, ranks)
}

// ranks are those of a group's members, in a call that takes some assertions.
func (w *Win) ranks(group *Group, assert, allowed Assert) (ranks []int, err error) {
	if err := w.check(); err != nil {
		return nil, err
	}
	if err := assert.Check(allowed); err != nil {
		return nil, err
	}
	if err := w.c.holds(group); err != nil {
		return nil, err
	}
	for rank := range group.g.Ranks(w.c.Comm.Group()).All() {
		ranks = append(ranks, int(rank))
	}
	return ranks, nil
}

// notify tells ranks something that they do not answer, and wait for.
func (w *Win) notify(ranks []int, kind rma.Kind) {
	defer w.p.flushAll()
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
		if err := w.p.eng.Down(w.peer(rank)); err != nil {
			return err
		}
	}
	return w.p.failure
}
