package window

import (
	"errors"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/rma"
	"github.com/openimpi/impi/internal/engine/collective"
	"github.com/openimpi/impi/internal/engine/construct"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/wireup"
)

// Fence completes this member's operations at their targets, and then synchronises all members
// (MPI-4.1, 12.5.1): after that no operation is under way, and no operation of the next epoch can
// have begun here. No counts of operations are exchanged, which would need a vector as long as the
// number of members.
func (e *Epochs) Fence(assert rma.Assert) error {
	if err := e.w.Check(); err != nil {
		return err
	}
	if err := assert.Check(rma.FenceAsserts); err != nil {
		return err
	}
	p := e.w.Process
	p.Lock()
	defer p.Unlock()
	if err := e.now().MayFence(); err != nil {
		return err
	}
	err := e.w.origin.flushAll(true)
	var lost error // an error of operations here, whose origins would see unchanged windows
	if errors.Is(err, message.ErrPeerDown) {
		lost = err
	}
	if e := e.w.meet(lost); e != nil {
		return errors.Join(err, e)
	}
	e.now().Fence(assert&rma.NoSucceed == 0)
	e.tell(nil)
	return err
}

// meet is a barrier, which fails at all members if failed is not nil at one. The process is locked,
// but may be unlocked meanwhile.
func (w *Win) meet(failed error) error {
	mine := int32(construct.FaultCode(failed))
	worst, done, err := collective.MaxOnBoard(w.c, mine)
	if !done {
		worst, err = largest(w.c, mine)
	}
	if err == nil && worst != 0 {
		err = construct.FailedElsewhere(uint32(worst))
	}
	return err
}

// largest returns the largest code of all members. The process is unlocked meanwhile, and locked
// again even if the simulator ends this proc.
func largest(c *proc.Comm, mine int32) (int32, error) {
	c.Process().Unlock()
	defer c.Process().Lock()
	all := []int32{0}
	err := collective.AllreduceSlices(c, []int32{mine}, all, datatype.Max)
	return all[0], err
}

// Post opens an exposure epoch of this member's memory for the members of group, without waiting
// for them (MPI-4.1, 12.5.2).
func (e *Epochs) Post(group *proc.Group, assert rma.Assert) error {
	ranks, err := e.ranks(group, assert, rma.PostAsserts)
	if err != nil {
		return err
	}
	e.w.Process.Lock()
	defer e.w.Process.Unlock()
	if err := e.now().Post(ranks); err != nil {
		return err
	}
	e.notify(ranks, rma.Post)
	e.tell(nil)
	return nil
}

// Start opens an access epoch to the memory of the members of group, and waits until all of them
// have called Post (MPI-4.1, 12.5.2). If one of them is lost it returns an error, and no epoch is
// open.
func (e *Epochs) Start(group *proc.Group, assert rma.Assert) error {
	ranks, err := e.ranks(group, assert, rma.StartAsserts)
	if err != nil {
		return err
	}
	e.w.Process.Lock()
	defer e.w.Process.Unlock()
	if err := e.now().Start(ranks); err != nil {
		return err
	}
	if err := e.await(wireup.WantsPost, &e.w.server.posts, ranks); err != nil {
		e.now().Complete()
		return err
	}
	e.tell(ranks)
	return nil
}

// Complete ends the epoch of Start (MPI-4.1, 12.5.2). It waits until the operations of the epoch
// are complete at this member; for a dynamic window until they are complete at the targets, too.
func (e *Epochs) Complete() error {
	if err := e.w.Check(); err != nil {
		return err
	}
	e.w.Process.Lock()
	defer e.w.Process.Unlock()
	ranks, err := e.now().Started()
	if err != nil {
		return err
	}
	err = e.w.origin.flushAll(e.w.flavor == WinFlavorDynamic) // for dynamic windows, as only their targets find bad addresses
	e.notify(ranks, rma.Complete)
	e.now().Complete()
	e.tell(ranks)
	return err
}

// Wait ends the epoch of Post when all members of its group have called Complete (MPI-4.1, 12.5.2):
// then their operations in this memory are complete.
func (e *Epochs) Wait() error {
	if err := e.w.Check(); err != nil {
		return err
	}
	e.w.Process.Lock()
	defer e.w.Process.Unlock()
	ranks, err := e.now().Posted()
	if err == nil {
		err = e.await(wireup.WantsComplete, &e.w.server.completes, ranks)
	}
	if err == nil {
		e.now().Wait()
		e.tell(nil)
	}
	return err
}

// Test is Wait without blocking: it ends the epoch if done is true (MPI-4.1, 12.5.2). It makes
// progress.
func (e *Epochs) Test() (done bool, err error) {
	if err := e.w.Check(); err != nil {
		return false, err
	}
	p := e.w.Process
	p.Lock()
	defer p.Unlock()
	ranks, err := e.now().Posted()
	if err != nil {
		return false, err
	}
	p.Test()
	e.w.server.CarryOn()
	if done = e.w.server.completes.Take(ranks); done {
		e.now().Wait()
		e.tell(nil)
		return true, nil
	}
	return false, e.gone(&e.w.server.completes, ranks)
}

func (e *Epochs) ranks(group *proc.Group, assert, allowed rma.Assert) (ranks []int, err error) {
	if err := e.w.Check(); err != nil {
		return nil, err
	}
	if err := assert.Check(allowed); err != nil {
		return nil, err
	}
	if err := construct.CheckSubset(e.w.c, group); err != nil {
		return nil, err
	}
	for rank := range group.Members().Ranks(e.w.c.Comm.Group()).All() {
		ranks = append(ranks, int(rank))
	}
	return ranks, nil
}

// notify sends ranks a notice, for which they wait and to which they do not reply.
func (e *Epochs) notify(ranks []int, kind rma.Kind) {
	defer e.w.Process.Endpoints.FlushAll()
	for _, rank := range ranks {
		a := e.w.origin.ask(rank, rma.Header{Kind: kind}, parts{})
		e.w.origin.enlist(&e.w.origin.targets[rank], a)
	}
}

func (e *Epochs) await(what string, notices *rma.Arrivals, ranks []int) error {
	return e.w.server.until(awaited{what: what, notices: notices, from: ranks}, func() (bool, error) {
		if notices.Take(ranks) {
			return true, nil
		}
		return false, e.gone(notices, ranks)
	})
}

// gone returns an error if a rank that has not sent a notice is down.
func (e *Epochs) gone(notices *rma.Arrivals, ranks []int) error {
	for _, rank := range ranks {
		if _, missing := notices.Missing([]int{rank}); !missing {
			continue
		}
		if err := e.w.Process.Eng.Unreachable(e.w.peer(rank)); err != nil {
			return err
		}
	}
	return e.w.Process.Failure
}
