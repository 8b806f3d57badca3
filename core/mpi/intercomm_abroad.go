package mpi

import "github.com/openimpi/impi/core/comm"

// abroad is the flag of a proposal by which a leader says that the members of its side,
// or of the communicator by which the leaders talk, are of several jobs.
const abroad uint32 = 1 << 6

// joinAbroad is the rest of joinOurs where procs of several jobs take part: what the two
// sides tell each other is what they would if they connected, by the communicator of
// the leaders in the place of a temporary link. The process is locked.
func (c *Comm) joinAbroad(localLeader int, x *introduction, mine comm.Offer, v verdict) (*Comm, error) {
	m := c.meeting(localLeader)
	m.show(toCreate)
	if x != nil {
		m.far = &otherLeader{x.peer.talk(leaders, x.tag), x.leader}
	}
	var err error
	if unconfirmed(&v.Proposal, 0) {
		err = m.confirm(&v)
	}
	if m.context, err = m.p.conclude(mine, v, comm.InterContexts, nil, err); err == nil {
		err = m.acquaint(m.sizes(comm.Proposal{}, nil))
		if err != nil && m.made == nil {
			m.p.release(m.context)
		}
	}
	err = m.settle(err)
	return m.made, err
}

// otherLeader is the leader of the other side, in a communicator.
type otherLeader struct {
	t    talk
	rank int
}

func (o *otherLeader) swap(s step, body []byte, bad error) ([]byte, error) {
	return o.t.swap(o.rank, s, body, bad)
}
