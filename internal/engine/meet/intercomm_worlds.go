package meet

import (
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/internal/engine/construct"
	"github.com/openimpi/impi/internal/engine/proc"
)

// severalWorlds is the flag of a proposal which says that members of a leader's side, or of the
// communicator between the leaders, belong to several jobs.
const severalWorlds uint32 = 1 << 6

// joinWorlds is the rest of joinOurs if procs of several jobs take part: the two sides exchange the
// same as when they connect, but in the communicator of the leaders instead of over a temporary
// link. The process is locked.
func joinWorlds(c *proc.Comm, localLeader int, x *introduction, mine comm.ContextUse, v construct.AssemblyResult) (*proc.Comm, error) {
	m := meeting(c, localLeader)
	m.show(proc.ToCreate)
	if x != nil {
		m.remoteRoot = &otherLeader{construct.NewExchange(x.peer, construct.LeadersBase, x.tag), x.leader}
	}
	var err error
	if construct.NeedsConfirmation(&v.Proposal, 0) {
		err = m.confirm(&v)
	}
	if m.Context, err = construct.Conclude(m.P, mine, v, comm.InterContexts, nil, err); err == nil {
		err = m.acquaint(m.sizes(comm.Proposal{}, nil))
		if err != nil && m.made == nil {
			construct.Release(m.P, m.Context)
		}
	}
	err = m.settle(err)
	return m.made, err
}

// otherLeader is the leader of the other side, as a rank of the communicator between the leaders.
type otherLeader struct {
	t    construct.Exchange
	rank int
}

func (o *otherLeader) swap(s Step, body []byte, bad error) ([]byte, error) {
	return swap(&o.t, o.rank, s, body, bad)
}
