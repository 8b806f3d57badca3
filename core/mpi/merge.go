package mpi

import (
	"fmt"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/wire"
)

// What members of a side tell of the high that they have given.
const (
	saidHigh = 1 << iota
	saidLow
	said = saidHigh | saidLow
)

// Merge makes an intracommunicator of both groups of an intercommunicator. All
// members of both call it. The group whose members give true for high comes
// after the other one. Where both give the same, the group comes first whose
// first member has the lower rank in World.
func (c *Comm) Merge(high bool) (*Comm, error) {
	d, err := c.merge(high)
	return d, c.failed("Merge", err)
}

func (c *Comm) merge(high bool) (*Comm, error) {
	if err := c.checkInter(); err != nil {
		return nil, err
	}
	if err := c.announce("Merge"); err != nil {
		return nil, err
	}
	context, theirs, err := c.mergeContext(high)
	if err != nil {
		return nil, err
	}
	first, second := c.Comm.Group(), c.Remote()
	ours, _ := first.At(0)
	other, _ := second.At(0)
	// IMPI ch.4, Intercomm_merge: equal ones are ordered by the leaders' world ranks.
	if high && !theirs || high == theirs && c.p.before(other, ours) {
		first, second = second, first
	}
	return c.adopt(comm.Spec{Group: first.Union(second)}, context)
}

// mergeContext agrees on the context, and tells what the other side gave for high.
func (c *Comm) mergeContext(high bool) (context wire.ContextID, theirs bool, err error) {
	p := c.p
	p.lock()
	defer p.unlock()
	if !c.ours() {
		context, err = c.foreignAgreement(comm.IntraContexts, func(mine wire.ContextID) (agreed wire.ContextID, err error) {
			agreed, theirs, err = c.crisscross(tagMerge, mine, &high)
			return agreed, err
		})
		return context, theirs, err
	}
	flags := doesMerge | saidLow
	if high {
		flags = doesMerge | saidHigh
	}
	x := c.agreement(c.ordinal())
	x.propose(flags, nil, func() {})
	x.wait()
	context, err = x.settle(comm.IntraContexts, nil)
	if err == nil && (x.all.Flags&said == said || x.side&said == said) {
		err = fmt.Errorf("%w: members of one group have given different values for high", ErrArg)
	}
	return context, x.side&said == saidHigh, err
}
