package meet

import (
	"errors"
	"fmt"
	"math"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/engine/collective"
	"github.com/openimpi/impi/internal/engine/construct"
	"github.com/openimpi/impi/internal/engine/p2p"
	"github.com/openimpi/impi/internal/engine/proc"
)

// noContext is the largest context ID, which a leader that cannot make the intercommunicator
// proposes: members that run another MPI then fail because no ID is left.
const noContext wire.ContextID = math.MaxUint64

// joinForeign makes an intercommunicator in a job in which some procs run another MPI. IMPI's text
// about it (IMPI ch.4, Intercomm_create) could not be had. This uses what IMPI defines: an
// Allreduce, an exchange of the leaders on the peer communicator, and a Bcast.
func joinForeign(c *proc.Comm, localLeader int, x *introduction) (*proc.Comm, error) {
	p := c.Process()
	p.Lock()
	defer p.Unlock()
	var remote *comm.Group
	var bad error
	context, err := construct.ForeignAgreement(c, comm.InterContexts, func(mine wire.ContextID) (wire.ContextID, error) {
		if x != nil && x.bad != nil {
			bad, mine = x.bad, noContext
		}
		agreed, procs, err := introduce(c, localLeader, x, mine)
		if err != nil {
			return 0, err
		}
		remote, bad = others(c, procs, bad)
		return agreed, nil
	})
	if bad != nil || err != nil {
		return nil, errors.Join(bad, err)
	}
	return construct.NewInheriting(c, comm.Spec{Group: c.Comm.Group(), Masters: c.Masters(), Remote: remote}, context)
}

// introduce returns the context ID on which both sides agree, and the world ranks of the other
// side. It unlocks the process meanwhile.
func introduce(c *proc.Comm, localLeader int, x *introduction, mine wire.ContextID) (agreed wire.ContextID, procs []int32, err error) {
	c.Process().Unlock()
	defer c.Process().Lock()
	m := []uint64{uint64(mine)}
	if err := collective.AllreduceSlices(c, nil, m, datatype.Max); err != nil {
		return 0, nil, err
	}
	head := []uint64{m[0], 0}
	if x != nil && x.bad == nil {
		if head, procs, err = x.exchange(m[0]); err != nil {
			head = []uint64{uint64(noContext), 0} // sent anyway, so that the others do not wait for ever
		}
	}
	if e := broadcast(c, head, localLeader); e != nil {
		return 0, nil, e
	}
	if procs == nil {
		procs = make([]int32, min(head[1], uint64(c.Process().Members.World().Size())))
	}
	if e := broadcast(c, procs, localLeader); e != nil {
		return 0, nil, e
	}
	return wire.ContextID(head[0]), procs, err
}

// exchange exchanges with the other leader, on the peer communicator, {largest context ID, size of
// the group} and then the group's world ranks. It returns the larger ID and the other group.
func (x *introduction) exchange(m uint64) (head []uint64, procs []int32, err error) {
	own := x.c.Comm.Group()
	head = []uint64{m, uint64(own.Size())}
	theirs := make([]uint64, 2)
	if err = swapSlices(x, head, theirs); err != nil {
		return nil, nil, err
	}
	if world := uint64(x.c.Process().Members.World().Size()); theirs[1] == 0 || theirs[1] > world {
		return nil, nil, fmt.Errorf("%w: a remote group of %d in a world of %d", comm.ErrMessage, theirs[1], world)
	}
	ranks := make([]int32, 0, own.Size())
	for p := range own.All() {
		ranks = append(ranks, int32(p))
	}
	procs = make([]int32, theirs[1])
	if err = swapSlices(x, ranks, procs); err != nil {
		return nil, nil, err
	}
	return []uint64{max(m, theirs[0]), theirs[1]}, procs, nil
}

// others makes the remote group from world ranks, which each member checks.
func others(c *proc.Comm, ranks []int32, bad error) (*comm.Group, error) {
	if bad != nil {
		return nil, bad
	}
	list := make([]int, len(ranks))
	for i, r := range ranks {
		list[i] = int(r)
	}
	g, err := c.Process().Members.World().Incl(list)
	if err != nil {
		return nil, fmt.Errorf("remote group: %w", err)
	}
	if proc, overlap := c.Comm.Group().CommonMember(g); overlap {
		return nil, fmt.Errorf("%w: proc %d is in both groups", comm.ErrComm, proc)
	}
	return g, nil
}

// swapSlices exchanges slices with the other leader. Errors are returned without a call of the
// handler.
func swapSlices[T proc.Type](x *introduction, out, in []T) error {
	tag := int(x.tag)
	_, err := p2p.Exchange(x.peer, p2p.SendrecvArgs{Out: proc.Of(out), Dst: x.leader, Stag: tag, In: proc.Of(in), Src: x.leader, Rtag: tag})
	return err
}

// broadcast is Bcast. Errors are returned without a call of the handler.
func broadcast[T proc.Type](c *proc.Comm, buf []T, root int) error {
	return collective.Execute(c, &collective.Call{What: collective.OpBcast, Send: datatype.Bytes(buf), Root: root, Kind: datatype.KindOf[T]()})
}
