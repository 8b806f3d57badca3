package meet

import (
	"fmt"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/engine/collective"
	"github.com/openimpi/impi/internal/engine/construct"
	"github.com/openimpi/impi/internal/engine/proc"
)

// The values of high that members of a side have passed, as flags of their proposals.
const (
	saidHigh = 1 << iota
	saidLow
	said = saidHigh | saidLow
)

// Merge makes a communicator of both groups of an intercommunicator (MPI-4.1, 7.6.2): first the one
// whose members do not say high.
func Merge(c *proc.Comm, high bool) (*proc.Comm, error) {
	if err := construct.CheckInter(c); err != nil {
		return nil, err
	}
	if err := collective.CheckConstructor(c, "Merge"); err != nil {
		return nil, err
	}
	context, theirs, err := mergeContext(c, high)
	if err != nil {
		return nil, err
	}
	first, second := c.Comm.Group(), c.Remote()
	ours, _ := first.At(0)
	other, _ := second.At(0)
	// IMPI ch.4, Intercomm_merge: equal values are ordered by the leaders' world ranks.
	if high && !theirs || high == theirs && c.Process().Worlds.Before(other, ours) {
		first, second = second, first
	}
	return construct.NewInheriting(c, comm.Spec{Group: first.Union(second)}, context)
}

// mergeContext agrees on the context ID, and on whether the other group says high (MPI-4.1, 7.6.2):
// it is an error if the members of a group differ.
func mergeContext(c *proc.Comm, high bool) (context wire.ContextID, theirs bool, err error) {
	p := c.Process()
	p.Lock()
	defer p.Unlock()
	if !construct.AllRunImpi(c) {
		context, err = construct.ForeignAgreement(c, comm.IntraContexts, func(mine wire.ContextID) (agreed wire.ContextID, err error) {
			agreed, theirs, err = construct.AgreeForMerge(c, construct.TagMerge, mine, &high)
			return agreed, err
		})
		return context, theirs, err
	}
	flags := collective.ConstructorMerge | saidLow
	if high {
		flags = collective.ConstructorMerge | saidHigh
	}
	x := construct.Agreement(c, c.Ordinal())
	x.Propose(flags, nil, func() {})
	x.Wait()
	context, err = x.Conclude(comm.IntraContexts, nil)
	if err == nil && (x.All.Flags&said == said || x.Side&said == said) {
		err = fmt.Errorf("%w: members of one group have given different values for high", proc.ErrArg)
	}
	return context, x.Side&said == saidHigh, err
}
