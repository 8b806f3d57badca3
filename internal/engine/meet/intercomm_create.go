package meet

import (
	"fmt"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/engine/collective"
	"github.com/openimpi/impi/internal/engine/construct"
	"github.com/openimpi/impi/internal/engine/proc"
)

// introduction has what a side's leader needs to exchange messages with the other leader.
type introduction struct {
	c      *proc.Comm
	peer   *proc.Comm
	leader int // the other leader's rank in peer
	tag    wire.Tag
	bad    error // why this leader cannot make it
}

// IntercommCreate makes an intercommunicator of two groups, whose leaders have peer in common
// (MPI-4.1, 7.6.2). peer, remoteLeader and tag matter at the leaders only.
func IntercommCreate(c *proc.Comm, localLeader int, peer *proc.Comm, remoteLeader, tag int) (*proc.Comm, error) {
	if err := construct.CheckIntra(c); err != nil {
		return nil, err
	}
	if _, ok := c.Proc(localLeader); !ok {
		return nil, fmt.Errorf("%w: local leader %d, the communicator has 0 to %d", comm.ErrRank, localLeader, c.Size()-1)
	}
	if tag < 0 || tag > int(c.Process().Job.TagUB) {
		return nil, fmt.Errorf("%w: %d, the job has 0 to %d", proc.ErrTag, tag, c.Process().Job.TagUB)
	}
	var x *introduction
	if c.Rank() == localLeader {
		x = &introduction{c: c, peer: peer, leader: remoteLeader, tag: wire.Tag(tag)}
		x.bad = x.check()
	}
	if err := collective.CheckConstructor(c, "IntercommCreate"); err != nil {
		return nil, err
	}
	if JobRunsImpi(c.Process()) {
		return joinOurs(c, localLeader, x)
	}
	return joinForeign(c, localLeader, x)
}

// check checks the arguments that only matter at the leader.
func (x *introduction) check() error {
	if err := x.peer.Usable(); err != nil {
		return fmt.Errorf("peer communicator: %w", err)
	}
	if int(x.tag) > x.peer.TagUB() {
		return fmt.Errorf("%w: %d, the peer communicator has 0 to %d", proc.ErrTag, x.tag, x.peer.TagUB())
	}
	if _, ok := x.peer.Partner(x.leader); !ok {
		return fmt.Errorf("%w: remote leader %d, the peer communicator has 0 to %d",
			comm.ErrRank, x.leader, x.peer.Partners().Size()-1)
	}
	return nil
}

// JobRunsImpi reports whether all procs of the job run this library, so that messages that IMPI
// does not have may be used.
func JobRunsImpi(p *proc.Process) bool { return construct.GroupRunsImpi(p, p.Members.Masters()) }

// joinOurs makes an intercommunicator if the whole job runs this library. Errors that only the
// leader sees are sent to all members of its side, and to the other leader if it is known.
func joinOurs(c *proc.Comm, localLeader int, x *introduction) (*proc.Comm, error) {
	p := c.Process()
	p.Lock()
	defer p.Unlock()
	p.Disconnects.BeginMeeting() // members of the other side may be of a job that is not known yet
	defer p.Disconnects.EndMeeting()
	seq := c.Ordinal()
	a := construct.Assemble(c, seq, 0, p.Members.World().Size())
	inner := construct.NewExchange(c, construct.InOrderBase+construct.LeadersBase, construct.WireTag(seq))
	var bad error
	if x != nil {
		bad = x.bad
		if !a.Leads() {
			a.Between = func() { x.deputize(&inner) }
		}
	}
	mine := p.Comms.Contexts.BeginAgreement(a.Leads())
	v, fault := a.Hold(comm.Proposal{ContextUse: mine, Fault: construct.FaultCode(bad), Flags: collective.ConstructorJoin}, nil, func(all comm.Proposal, _ []byte) construct.AssemblyResult {
		v := construct.AssemblyResult{Proposal: all}
		if x != nil {
			x.meet(&v)
		} else {
			delegate(&inner, localLeader, &v, p.Members.World().Size(), c.Size())
		}
		return v
	})
	if v.Flags&severalWorlds != 0 && bad == nil && fault == nil && v.Fault == 0 {
		return joinWorlds(c, localLeader, x, mine, v)
	}
	context, err := construct.Conclude(p, mine, v, comm.InterContexts, bad, fault)
	if err != nil {
		return nil, err
	}
	part, ok := a.Part(v)
	if !ok || part.Remote == nil {
		return nil, fmt.Errorf("%w: no remote group", comm.ErrMessage)
	}
	return construct.NewInheriting(c, comm.Spec{Group: c.Comm.Group(), Masters: c.Masters(), Remote: part.Remote}, context)
}

// meet exchanges verdicts with the other side's leader, so that all members of this side get its
// group.
func (x *introduction) meet(v *construct.AssemblyResult) {
	if x.bad != nil {
		return // no leader to exchange with
	}
	own := x.c.Comm.Group()
	if x.c.Wide() || x.peer.Wide() { // the leaders may number members differently, or not have them
		v.Flags |= severalWorlds
		own = comm.NewGroup(0, 1)
	}
	t := construct.NewExchange(x.peer, construct.LeadersBase, x.tag)
	theirs, err := t.SwapResults(x.leader, construct.AssemblyResult{Proposal: v.Proposal, Parts: comm.Partition{{Group: own}}}, x.c.Process().Members.World().Size(), 0)
	v.Proposal = v.Combine(theirs.Proposal)
	if v.Flags&severalWorlds != 0 {
		v.Fault = max(v.Fault, construct.FaultCode(err))
		return // joinWorlds exchanges the groups
	}
	if err == nil && len(theirs.Parts) == 1 {
		remote := theirs.Parts[0].Group
		if proc, overlap := own.CommonMember(remote); overlap {
			err = fmt.Errorf("%w: proc %d is in both groups", comm.ErrComm, proc)
		}
		v.Parts = comm.Partition{{Group: comm.NewGroup(0, x.c.Size()), Remote: remote}}
	} else if err == nil {
		err = fmt.Errorf("%w: %d groups", comm.ErrMessage, len(theirs.Parts))
	}
	v.Fault = max(v.Fault, construct.FaultCode(err))
}

// deputize is the part of a local leader that is not rank 0: it exchanges verdicts with the other
// leader for rank 0.
func (x *introduction) deputize(inner *construct.Exchange) {
	v, err := inner.RecvResult(0, x.c.Size(), 0)
	if err == nil {
		x.meet(&v)
	}
	v.Fault = max(v.Fault, construct.FaultCode(err))
	_ = inner.WaitSends(inner.IsendResult(0, v)) // if this fails, it fails in rank 0, too
}

// delegate is the part of rank 0 if another member is the local leader, which exchanges verdicts
// with the other leader.
func delegate(t *construct.Exchange, leader int, v *construct.AssemblyResult, procs, size int) {
	answer, err := t.SwapResults(leader, construct.AssemblyResult{Proposal: v.Proposal}, size, procs)
	if err == nil {
		*v = answer
	}
	v.Fault = max(v.Fault, construct.FaultCode(err))
}
