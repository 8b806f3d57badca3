package mpi

import (
	"fmt"

	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/wire"
)

// IntercommCreate makes an intercommunicator of the group of c, an
// intracommunicator, and another one that has no member in common with it. All
// members of both call it on theirs. localLeader is a rank in c, that of the
// member that talks to the other group's leader, which is remoteLeader in peer.
// peer and remoteLeader matter at the leaders only. Both sides give the same tag.
func (c *Comm) IntercommCreate(localLeader int, peer *Comm, remoteLeader, tag int) (*Comm, error) {
	d, err := c.intercommCreate(localLeader, peer, remoteLeader, tag)
	return d, c.failed("IntercommCreate", err)
}

// introduction is what the leader of a side needs to talk to the other one.
type introduction struct {
	c      *Comm
	peer   *Comm
	leader int // in peer
	tag    wire.Tag
	bad    error // why it cannot
}

func (c *Comm) intercommCreate(localLeader int, peer *Comm, remoteLeader, tag int) (*Comm, error) {
	if err := c.checkIntra(); err != nil {
		return nil, err
	}
	if _, ok := c.Proc(localLeader); !ok {
		return nil, fmt.Errorf("%w: local leader %d, the communicator has 0 to %d", comm.ErrRank, localLeader, c.Size()-1)
	}
	if tag < 0 || tag > int(c.p.job.TagUB) {
		return nil, fmt.Errorf("%w: %d, the job has 0 to %d", ErrTag, tag, c.p.job.TagUB)
	}
	var x *introduction
	if c.Rank() == localLeader {
		x = &introduction{c: c, peer: peer, leader: remoteLeader, tag: wire.Tag(tag)}
		x.bad = x.check()
	}
	if err := c.announce("IntercommCreate"); err != nil {
		return nil, err
	}
	if c.p.allOurs() {
		return c.joinOurs(localLeader, x)
	}
	return c.joinForeign(localLeader, x)
}

// check looks at what only the leader is asked for.
func (x *introduction) check() error {
	if err := x.peer.check(); err != nil {
		return fmt.Errorf("peer communicator: %w", err)
	}
	if int(x.tag) > x.peer.tagUB() {
		return fmt.Errorf("%w: %d, the peer communicator has 0 to %d", ErrTag, x.tag, x.peer.tagUB())
	}
	if _, ok := x.peer.Partner(x.leader); !ok {
		return fmt.Errorf("%w: remote leader %d, the peer communicator has 0 to %d",
			comm.ErrRank, x.leader, x.peer.Partners().Size()-1)
	}
	return nil
}

// allOurs tells whether nobody in the whole job runs another MPI.
func (p *process) allOurs() bool { return p.ours(p.roster.masters) }

// joinOurs makes an intercommunicator where the whole job is ours. What only the
// leader can see is told to all of its side, and to the other leader, if it is
// known who that is.
func (c *Comm) joinOurs(localLeader int, x *introduction) (*Comm, error) {
	p := c.p
	p.lock()
	defer p.unlock()
	p.beginMeeting() // somebody of the other side may be of a job that is not known yet
	defer p.endMeeting()
	seq := c.ordinal()
	a := c.assemble(seq, 0, p.roster.world.Size())
	inner := c.talk(inOrder+leaders, wireTag(seq))
	var bad error
	if x != nil {
		bad = x.bad
		if !a.leads() {
			a.between = func() { x.deputize(&inner) }
		}
	}
	mine := p.contexts.Offer(a.leads())
	v, fault := a.hold(comm.Proposal{Offer: mine, Fault: faultCode(bad), Flags: doesJoin}, nil, func(all comm.Proposal, _ []byte) verdict {
		v := verdict{Proposal: all}
		if x != nil {
			x.meet(&v)
		} else {
			inner.delegate(localLeader, &v, p.roster.world.Size(), c.Size())
		}
		return v
	})
	if v.Flags&abroad != 0 && bad == nil && fault == nil && v.Fault == 0 {
		return c.joinAbroad(localLeader, x, mine, v)
	}
	context, err := p.conclude(mine, v, comm.InterContexts, bad, fault)
	if err != nil {
		return nil, err
	}
	part, ok := a.part(v)
	if !ok || part.Remote == nil {
		return nil, fmt.Errorf("%w: no remote group", comm.ErrMessage)
	}
	return c.adopt(comm.Spec{Group: c.Comm.Group(), Masters: c.Masters(), Remote: part.Remote}, context)
}

// meet talks to the other side's leader, which adds its side to the verdict: all
// of ours get its group.
func (x *introduction) meet(v *verdict) {
	if x.bad != nil {
		return // whom should we talk to?
	}
	own := x.c.Comm.Group()
	if x.c.wide() || x.peer.wide() { // the other leader may know some members by other numbers, or not at all
		v.Flags |= abroad
		own = comm.NewGroup(0, 1)
	}
	t := x.peer.talk(leaders, x.tag)
	theirs, err := t.swapVerdicts(x.leader, verdict{v.Proposal, comm.Partition{{Group: own}}}, x.c.p.roster.world.Size(), 0)
	v.Proposal = v.With(theirs.Proposal)
	if v.Flags&abroad != 0 {
		v.Fault = max(v.Fault, faultCode(err))
		return // who is on the other side is told in other words
	}
	if err == nil && len(theirs.parts) == 1 {
		remote := theirs.parts[0].Group
		if proc, overlap := own.Meets(remote); overlap {
			err = fmt.Errorf("%w: proc %d is in both groups", comm.ErrComm, proc)
		}
		v.parts = comm.Partition{{Group: comm.NewGroup(0, x.c.Size()), Remote: remote}}
	} else if err == nil {
		err = fmt.Errorf("%w: %d groups", comm.ErrMessage, len(theirs.parts))
	}
	v.Fault = max(v.Fault, faultCode(err))
}

// deputize is the part of a leader that is not rank 0, which asks it to meet the
// other one.
func (x *introduction) deputize(inner *talk) {
	v, err := inner.readVerdict(0, x.c.Size(), 0)
	if err == nil {
		x.meet(&v)
	}
	v.Fault = max(v.Fault, faultCode(err))
	_ = inner.sent(inner.postVerdict(0, v)) // what breaks here does so in rank 0, too
}

// delegate has the local leader meet the other one.
func (t *talk) delegate(leader int, v *verdict, procs, size int) {
	answer, err := t.swapVerdicts(leader, verdict{Proposal: v.Proposal}, size, procs)
	if err == nil {
		*v = answer
	}
	v.Fault = max(v.Fault, faultCode(err))
}
